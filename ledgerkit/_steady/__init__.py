"""The loaded point in closed form: what ``lk.steady_state`` is made of."""
