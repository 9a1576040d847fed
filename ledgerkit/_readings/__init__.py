"""The five steps of reading a model: fields, structures, savings, costs, a load test."""
