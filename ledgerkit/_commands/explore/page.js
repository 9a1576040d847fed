"use strict";
(() => {
  const data = JSON.parse(document.getElementById("data").textContent);
  const html = document.documentElement;
  const form = document.querySelector("form");
  const find = (selector) => document.querySelector(selector);
  const LEDGERS = ["attention_kv", "ffn_mlp", "scheduling"];
  const MINUS = "\u2212";
  const steps = data.contexts.length;
  const narrow = window.matchMedia("(max-width: 620px)");
  const preset = () => (narrow.matches ? "phone" : "wide");
  const views = {};
  let generation = 0;

  // state ------------------------------------------------------------------------------------

  const dark = window.matchMedia("(prefers-color-scheme: dark)").matches;
  const choices = {
    model: data.models.map((model) => model.slug),
    against: ["", ...data.models.map((model) => model.slug)],
    hardware: data.hardware.map((device) => device.slug),
    precision: data.precisions.map((precision) => precision.key),
    concurrency: data.concurrencies.map(String),
    context: data.contexts.map(String),
    language: ["en", "zh"],
    theme: ["article", "dark"],
  };
  const first = (name, ...wanted) => wanted.find((value) => choices[name].includes(value));
  const defaults = {
    model: first("model", "deepseek-v3", choices.model[0]),
    against: first("against", "gemma-4-26b-a4b", ""),
    hardware: first("hardware", "h200-sxm-141gb", choices.hardware[0]),
    precision: choices.precision[0],
    concurrency: first("concurrency", String(data.reference[1]), choices.concurrency[0]),
    context: first("context", String(data.reference[0]), choices.context[0]),
    language: data.language,
    theme: dark ? "dark" : "article",
  };
  const state = { ...defaults };

  function readLink() {
    const given = new URLSearchParams(location.hash.slice(1));
    for (const name of Object.keys(choices)) {
      const value = given.get(name);
      state[name] = choices[name].includes(value) ? value : state[name];
    }
  }

  function writeLink() {
    const link = `#${new URLSearchParams(state)}`;
    try {
      history.replaceState(null, "", link);
    } catch {
      // a page inside another page may not own its address; the view works without
    }
  }

  // words and numbers: the rules of ledgerkit.text.numbers ------------------------------------

  function text(key, fields = {}) {
    const template = data.texts[state.language][key];
    return template.replace(/\{(\w+)\}/g, (_, name) => String(fields[name]));
  }

  function grouped(value, digits = 0) {
    const options = { minimumFractionDigits: digits, maximumFractionDigits: digits };
    return value.toLocaleString("en-US", options).replace("-", MINUS);
  }

  function si(value, unit) {
    const prefixes = ["", "k", "M", "G", "T", "P", "E"];
    let size = value;
    let power = 0;
    while (size >= 999.5 && power < prefixes.length - 1) {
      size /= 1000;
      power += 1;
    }
    const whole = power === 0 && Number.isInteger(size);
    return `${whole ? size : size.toPrecision(3)} ${prefixes[power]}${unit}`;
  }

  function milliseconds(seconds) {
    const value = seconds * 1e3;
    return grouped(value, value >= 99.95 ? 0 : 1);
  }

  function duration(seconds) {
    if (seconds >= 999.5) return `${grouped(seconds)} s`;
    if (seconds >= 0.9995) return `${seconds.toPrecision(3)} s`;
    return `${milliseconds(seconds)} ms`;
  }

  function rate(perSecond) {
    return `${perSecond < 9.95 ? perSecond.toFixed(1) : grouped(perSecond)} token/s`;
  }

  function contextText(tokens) {
    const kilo = tokens / 1024;
    return `${Number.isInteger(kilo) || kilo >= 9.95 ? grouped(kilo) : kilo.toFixed(1)}K`;
  }

  function integerShares(amounts) {
    const total = amounts.reduce((sum, amount) => sum + amount, 0);
    const exact = amounts.map((amount) => (100 * amount) / total);
    const shares = exact.map((value) => (value >= 0.5 ? Math.floor(value) : 0));
    const order = exact
      .map((value, index) => [value - shares[index], index])
      .filter(([, index]) => exact[index] >= 0.5)
      .sort((one, other) => other[0] - one[0] || one[1] - other[1]);
    const missing = 100 - shares.reduce((sum, share) => sum + share, 0);
    for (let place = 0; place < missing; place += 1) shares[order[place % order.length][1]] += 1;
    return shares.map((share, index) => (amounts[index] <= 0 ? "–" : share || "<1"));
  }

  // the books of one model --------------------------------------------------------------------

  const named = (list, slug) => data[list].find((entry) => entry.slug === slug);

  function slot(slug, taken) {
    const family = data.families.findIndex((name) => slug.includes(name));
    const wanted = family >= 0 ? family : 4;
    return wanted === taken ? 5 : wanted;
  }

  function opened(slug, taken) {
    const model = named("models", slug);
    const books = data.states[`${slug}|${state.hardware}|${state.precision}`];
    const place = slot(slug, taken);
    const look = { color: data.themes[state.theme].series[place], shape: data.shapes[place] };
    const base = choices.concurrency.indexOf(state.concurrency) * steps;
    const layout = data.precisions.find((entry) => entry.key === state.precision).kv_dtype;
    const cache = data.caches[`${slug}|${layout}`];
    const points = [];
    for (let step = 0; books && step < steps; step += 1) {
      const at = base + step;
      if (books.fits[at] === "-") continue;
      const seconds = LEDGERS.map((ledger) => books[`${ledger}_s`][at]);
      const total = seconds[0] + seconds[1] + seconds[2];
      points.push({
        step, seconds, total, context: data.contexts[step], fits: books.fits[at],
        shares: seconds.map((value) => value / total), low: books.tpot_s_low[at],
        high: books.tpot_s_high[at], memory: books.resident_bytes_device[at],
        first: books.ttft_s[step], seats: books.max_concurrency[step],
      });
    }
    const here = points.find((point) => String(point.context) === state.context);
    return { slug, slot: place, label: model.name, books, cache, points, here, ...look };
  }

  // charts ------------------------------------------------------------------------------------

  function triangleRows(shown, ground) {
    const place = ([attention, , scheduling]) => ({
      x: ground.left + (attention + scheduling / 2) * ground.width,
      y: ground.base - scheduling * ground.height,
    });
    const background = data.themes[state.theme].background;
    const rows = { trail: [], marks: [], words: [] };
    shown.forEach((one, line) => {
      const fitting = one.points.filter((point) => point.fits !== "n");
      fitting.forEach((point, order) => {
        const size = 1 + (3.6 * point.step) / (steps - 1);
        rows.trail.push({ ...place(point.shares), size, fill: one.color, line, order, opacity: 1 });
      });
      const mark = (point, shape, size, angle) => {
        const [t0, t1, t2] = point.shares.map(
          (share, index) => `${Math.round(100 * share)}%, ${duration(point.seconds[index])}`,
        );
        const at = contextText(point.context);
        rows.marks.push({
          ...place(point.shares), shape, size, angle, width: 1.6, opacity: 1,
          fill: point.fits === "n" ? background : one.color,
          stroke: point.fits === "n" ? one.color : background,
          label: `${one.label}, ${at}: ${t0}; ${t1}; ${t2}`, t0, t1, t2,
        });
      };
      const last = one.points.at(-1);
      for (const point of one.points) {
        if (point.fits === "n" && point !== one.here) mark(point, "circle", 26, 0);
      }
      if (fitting.length > 1 && last.fits !== "n" && last !== one.here) {
        const [from, to] = fitting.slice(-2).map((point) => place(point.shares));
        mark(last, "triangle", 90, (Math.atan2(to.x - from.x, from.y - to.y) * 180) / Math.PI);
      }
      if (one.here) {
        mark(one.here, one.shape, 190, 0);
        const { x, y } = place(one.here.shares);
        const half = one.label.length * 4.2 + 6;
        const word = { x, y: y - 18, text: one.label, color: one.color, half };
        const other = rows.words[0];
        if (other && Math.abs(other.y - word.y) < 18 && Math.abs(other.x - word.x) < half + other.half) {
          // the lower mark keeps its name, the upper one moves up
          const upper = word.y <= other.y ? word : other;
          upper.y = Math.min(word.y, other.y, (upper === word ? other : word).y - 18);
        }
        rows.words.push(word);
      }
    });
    rows.words = rows.words.filter((word) => {
      // inside the triangle, clear of the scales along its sides; near the top there is no room,
      // and the key above the chart has the name
      const side = ((ground.base - word.y) / ground.height) * (ground.width / 2);
      const low = ground.left + side + word.half;
      const high = ground.left + ground.width - side - word.half;
      word.x = Math.min(Math.max(word.x, low), high);
      return low < high;
    });
    for (const row of rows.marks) row.angle = (row.angle + 360) % 360;
    return rows;
  }

  function timeRows(one) {
    const places = { ffn_mlp: 0, attention_kv: 1, scheduling: 2 };
    return {
      step: one.points.flatMap((point) =>
        LEDGERS.map((ledger, index) => ({
          context: point.context, ledger, order: places[ledger], ms: point.seconds[index] * 1e3,
        })),
      ),
      band: one.points.map((point) => ({
        context: point.context, low_ms: point.low * 1e3, high_ms: point.high * 1e3,
      })),
      here: one.here ? [{ context: one.here.context }] : [],
    };
  }

  function cacheRows(shown) {
    const layout = data.precisions.find((entry) => entry.key === state.precision).kv_dtype;
    const curve = (label, bytes, extra) =>
      bytes.map((value, step) => ({ label, context: data.contexts[step], bytes: value, ...extra }))
        .filter((row) => row.bytes > 0);
    return {
      others: data.models.flatMap((model) => {
        const cache = data.caches[`${model.slug}|${layout}`];
        return cache ? curve(model.name, cache.bytes, {}) : [];
      }),
      // the compared curve lies wide under the narrow one, so that equal ones both show
      cache: [...shown].reverse().flatMap((one) =>
        curve(one.label, one.cache?.bytes ?? [], {
          color: one.color, width: one === shown[0] ? 2.2 : 5,
        }),
      ),
      here: [{ context: Number(state.context) }],
    };
  }

  // words around the charts -------------------------------------------------------------------

  function finding(one) {
    if (!one.books) {
      const device = named("hardware", state.hardware).name;
      return text("page.none", { label: one.label, device });
    }
    const context = contextText(Number(state.context));
    if (!one.here) return text("page.beyond", { label: one.label, context });
    const [a, f, s] = integerShares(one.here.seconds);
    const [start, end] = [one.points[0], one.points.at(-1)];
    return text("page.finding", {
      label: one.label, context, batch: state.concurrency, time: duration(one.here.total), a, f, s,
      first: contextText(start.context), last: contextText(end.context),
      from: integerShares(start.seconds)[0], to: integerShares(end.seconds)[0],
    });
  }

  function law(one) {
    return `${one.label}: ${one.cache?.law[state.language] ?? "–"}`;
  }

  const ROWS = [
    ["page.row.layout", (one) => one.books.text[state.language]],
    ["page.row.step", (one) => duration(one.here.total)],
    ["page.row.band", (one) =>
      text("page.band", { low: duration(one.here.low), high: duration(one.here.high) })],
    ...LEDGERS.map((ledger, index) => [
      `ledger.plain.${ledger}`,
      (one) => `${integerShares(one.here.seconds)[index]}% (${duration(one.here.seconds[index])})`,
    ]),
    ["page.row.rate", (one) => rate(Number(state.concurrency) / one.here.total)],
    ["page.row.first", (one) => duration(one.here.first)],
    ["page.row.memory", (one) =>
      text("page.of", { used: si(one.here.memory, "B"), room: si(one.books.capacity_bytes, "B") })],
    ["page.row.fits", (one) => text(`page.fits.${one.here.fits}`)],
    ["page.row.seats", (one) => grouped(one.here.seats)],
    ["page.row.cache", (one) => si(one.cache.bytes[one.here.step], "B")],
  ];

  function element(tag, content, attributes = {}) {
    const made = document.createElement(tag);
    made.textContent = content;
    for (const [name, value] of Object.entries(attributes)) made.setAttribute(name, value);
    return made;
  }

  function drawNumbers(shown) {
    const head = element("tr", "");
    head.append(element("th", text("page.quantity"), { scope: "col" }));
    for (const one of shown) {
      head.append(element("th", one.label, { scope: "col", style: `color:${one.color}` }));
    }
    find("thead").replaceChildren(head);
    const body = ROWS.map(([key, write]) => {
      const row = element("tr", "", { "data-key": key });
      row.append(element("th", text(key), { scope: "row" }));
      for (const one of shown) {
        const value = one.here ? write(one) : "–";
        const alarm = key === "page.row.fits" && one.here?.fits === "n";
        row.append(element("td", value, alarm ? { class: "alert" } : {}));
      }
      return row;
    });
    find("tbody").replaceChildren(...body);
  }

  function drawKey(shown) {
    const symbols = { circle: "●", square: "■", diamond: "◆", "triangle-up": "▲",
      "triangle-down": "▼", cross: "✚" };
    for (const key of document.querySelectorAll(".key")) {
      key.replaceChildren(...shown.map((one) =>
        element("span", `${symbols[one.shape]} ${one.label}`, { style: `color:${one.color}` })));
    }
  }

  function python(one) {
    const precision = data.precisions.find((entry) => entry.key === state.precision);
    const options = [];
    if (precision.weights) options.push(`weights="${precision.weights}"`);
    if (precision.kv_dtype !== "bf16") options.push(`kv_dtype="${precision.kv_dtype}"`);
    for (const name of ["tp", "dp_attention", "ep"]) {
      if (one.books && one.books[name] > 1) options.push(`${name}=${one.books[name]}`);
    }
    return [
      "import ledgerkit as lk", "", "books = lk.ledger(", `    "${one.slug}",`,
      `    "${state.hardware}",`, `    lk.Deployment(${options.join(", ")}),`, "    lk.Workload(",
      `        prompt_tokens=${state.context},`, `        output_tokens=${data.output_tokens},`,
      `        concurrency=${state.concurrency},`, "    ),", ")", "books.share(), books.tpot_s, books.fits",
    ].join("\n");
  }

  function chosen() {
    const one = opened(state.model, -1);
    if (!state.against || state.against === state.model) return [one];
    return [one, opened(state.against, one.slot)];
  }

  function rows(shown) {
    return {
      // the chosen model is drawn last, on top
      triangle: triangleRows([...shown].reverse(), data.geometry[preset()]),
      time: timeRows(shown[0]),
      cache: cacheRows(shown),
    };
  }

  async function draw() {
    writeLink();
    const shown = chosen();
    const [one] = shown;
    const told = shown.map(finding).join(" ");
    find("#finding").replaceChildren(...shown.map((each) => element("p", finding(each))));
    find("output").textContent = contextText(Number(state.context));
    form.elements.context.setAttribute("aria-valuetext", contextText(Number(state.context)));
    find("#time-note").textContent = text("page.time.note", { label: one.label });
    find("#python").textContent = python(one);
    drawNumbers(shown);
    drawKey(shown);
    const descriptions = {
      triangle: `${text("page.triangle")}. ${told}`,
      time: `${text("page.time")}. ${finding(one)}`,
      cache: `${text("page.cache")}. ${shown.map(law).join("; ")}`,
    };
    for (const [name, sets] of Object.entries(rows(shown))) {
      const view = views[name];
      if (!view) return;
      for (const [set, values] of Object.entries(sets)) view.data(set, values);
      view.description(descriptions[name]);
      await view.runAsync();
    }
    html.dataset.drawn = new URLSearchParams(state).toString();
  }

  async function embed() {
    generation += 1;
    const mine = generation;
    const specs = data.specs[`${state.language}|${state.theme}|${preset()}`];
    const options = {
      renderer: "svg", actions: false, tooltip: { theme: state.theme === "dark" ? "dark" : "light" },
    };
    const sets = rows(chosen());
    for (const [name, spec] of Object.entries(specs)) {
      const made = await vegaEmbed(`#${name}`, { ...spec, datasets: sets[name] }, options);
      if (mine !== generation) return;
      views[name] = made.view;
    }
    await draw();
  }

  // controls ----------------------------------------------------------------------------------

  function offer(name, entries) {
    form.elements[name].replaceChildren(
      ...entries.map(([value, label]) => element("option", label, { value })),
    );
    form.elements[name].value = state[name];
  }

  function label() {
    html.lang = state.language === "zh" ? "zh-CN" : "en";
    html.dataset.theme = state.theme;
    document.title = `${text("page.title")} · ledgerkit`;
    for (const node of document.querySelectorAll("[data-text]")) node.textContent = text(node.dataset.text);
    const models = data.models.map((model) => [model.slug, model.name]);
    offer("model", models);
    offer("against", [["", text("page.nothing")], ...models]);
    offer("hardware", data.hardware.map((device) => [device.slug, device.name]));
    offer("precision", data.precisions.map((entry) => [entry.key, entry.name[state.language]]));
    offer("concurrency", choices.concurrency.map((value) => [value, value]));
    offer("theme", choices.theme.map((value) => [value, text(`page.theme.${value}`)]));
    form.elements.language.value = state.language;
    form.elements.context.max = steps - 1;
    form.elements.context.value = choices.context.indexOf(state.context);
    find("#foot").textContent = text("page.foot", {
      version: data.version, context: contextText(data.reference[0]), batch: data.reference[1],
      output: data.output_tokens,
    });
  }

  form.addEventListener("input", (event) => {
    const { name, value } = event.target;
    state[name] = name === "context" ? choices.context[value] : value;
    if (name === "language" || name === "theme") {
      label();
      embed();
    } else {
      draw();
    }
  });
  form.addEventListener("submit", (event) => event.preventDefault());
  const copies = { copy: () => find("#python").textContent, link: () => location.href };
  for (const [name, words] of Object.entries(copies)) {
    find(`#${name}`).addEventListener("click", async () => {
      await navigator.clipboard.writeText(words());
      find(`#${name}`).textContent = text("page.copied");
    });
  }
  window.addEventListener("hashchange", () => {
    readLink();
    label();
    embed();
  });
  narrow.addEventListener("change", embed);
  readLink();
  label();
  embed();
})();
