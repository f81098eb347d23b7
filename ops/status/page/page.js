// The page of the status: it asks for status.json every two seconds and draws what it says.
"use strict";

const $ = id => document.getElementById(id);

function bytes(n) {
  const units = ["B", "KiB", "MiB", "GiB", "TiB", "PiB", "EiB"];
  let i = 0;
  for (; n >= 1024 && i < units.length - 1; i++) n /= 1024;
  return (i === 0 || n >= 100 ? Math.round(n) : n.toPrecision(3)) + " " + units[i];
}
function count(n) {
  if (n >= 1e9) return (n / 1e9).toPrecision(3) + " G";
  if (n >= 1e6) return (n / 1e6).toPrecision(3) + " M";
  if (n >= 1e4) return (n / 1e3).toPrecision(3) + " k";
  return n >= 10 || Number.isInteger(n) ? String(Math.round(n)) : n.toPrecision(2);
}
function duration(s) {
  if (s === 0) return "–";
  if (s < 1e-3) return Math.round(s * 1e6) + " µs";
  if (s < 1) return (s * 1e3).toPrecision(3) + " ms";
  return s.toPrecision(3) + " s";
}
function age(s) {
  const d = Math.floor(s / 86400), h = Math.floor(s / 3600) % 24, m = Math.floor(s / 60) % 60;
  return d ? `${d} d ${h} h` : h ? `${h} h ${m} min` : m ? `${m} min` : `${Math.floor(s)} s`;
}
const percent = x => (100 * x).toFixed(x > 0 && x < 0.1 ? 1 : 0) + " %";

// plot draws lines, each [class, numbers], over the last ten minutes.
function plot(svg, lines, format) {
  const width = 300, height = 100, points = 300;
  const highest = Math.max(...lines.flatMap(l => l[1]), 0), top = highest * 1.05 || 1;
  svg.setAttribute("viewBox", `0 0 ${width} ${height}`);
  svg.setAttribute("preserveAspectRatio", "none");
  svg.replaceChildren();
  const path = (cls, d) => {
    const p = document.createElementNS("http://www.w3.org/2000/svg", "path");
    p.setAttribute("class", cls);
    p.setAttribute("d", d);
    svg.append(p);
  };
  path("grid", [0.25, 0.5, 0.75].map(y => `M0 ${y * height}H${width}`).join(""));
  for (const [cls, ys] of lines) {
    const from = width - ys.length * width / points;
    path(cls, ys.map((y, i) => `${i ? "L" : "M"}${(from + (i + 1) * width / points).toFixed(1)} ${(height - height * y / top).toFixed(1)}`).join(""));
  }
  svg.nextElementSibling.textContent = highest > 0 ? format(highest) : "";
}

function legend(el, parts) {
  el.replaceChildren(...parts.flatMap(([cls, text], i) => {
    const s = document.createElement("b");
    s.className = cls;
    s.textContent = text;
    return i ? [" · ", s] : [s];
  }));
}

function rows(table, all) {
  table.tBodies[0].replaceChildren(...all.map(cells => {
    const tr = document.createElement("tr");
    for (const c of cells) tr.insertCell().textContent = c;
    return tr;
  }));
}

// meter is a row; with scarce it turns yellow when little is left.
function meter(name, used, all, text, scarce) {
  const row = document.createElement("div"), m = document.createElement("meter"), note = document.createElement("small");
  row.className = "meter";
  m.max = all || 1;
  m.value = used;
  if (scarce) {
    m.low = m.high = 0.9 * m.max;
    m.optimum = 0;
  }
  note.textContent = text;
  const right = document.createElement("div");
  right.append(m, note);
  row.append(name, right);
  return row;
}

// scrub says how the scrub of a volume is doing.
function scrub(s) {
  const from = s.running ? s : s.last;
  const found = (from.damaged ? `; ${count(from.damaged)} blocks damaged` : "") + (from.unchecked ? `; ${count(from.unchecked)} could not be checked` : "");
  if (s.running) return `${count(s.done)}${s.total ? " of " + count(s.total) : ""} blocks, at ${bytes(s.rate)}/s at most${found}`;
  if (s.error) return "ended before its time: " + s.error;
  return s.ended ? `ended ${new Date(1000 * s.ended).toLocaleString()}${found || "; no damage"}` : "none yet";
}

// volume is what there is of a volume; named says that there are others.
function volume(v, named) {
  const all = [], s = v.space, j = v.journal, add = (tag, text, cls) => {
    const e = document.createElement(tag);
    e.textContent = text;
    e.className = cls || "";
    all.push(e);
  };
  if (named) add("h3", `${v.path} (${v.image})`);
  if (named && v.problem) add("p", v.problem, "problem");
  if (!v.open) return all;
  const used = s.bytes - s.free_bytes, files = s.files - s.free_files, asked = v.cache.hits + v.cache.misses;
  all.push(
    meter("Space", used, s.bytes, `${bytes(used)} of ${bytes(s.bytes)}, ${bytes(s.free_bytes)} free`, true),
    meter("Inodes", files, s.files, `${count(files)} of ${count(s.files)}`, true),
    meter("Log", j.units_used, j.units, `${j.units_used} of ${j.units} groups; ${bytes(j.ring_used)} of ${bytes(j.ring)} of large data`),
    meter("Scrub", v.scrub.running ? v.scrub.done : 0, v.scrub.total, scrub(v.scrub)),
    meter("Cache", v.cache.used, v.cache.size, `${bytes(v.cache.used)} of ${bytes(v.cache.size)}` + (asked ? `; ${percent(v.cache.hits / asked)} found there` : "")));
  const m = v.moments;
  if (m.open) add("p", `${m.open > 1 ? m.open + " checks or backups read" : "A check or a backup reads"} the volume as it was: ${bytes(m.memory)} in memory and ${bytes(m.file)} in a file are kept for that.`);
  add("p", `${count(j.commits)} commits in ${count(j.groups)} groups, ${count(j.barriers)} barriers.`);
  if (j.tried_barrier) add("p", `A write and its barrier took ${Math.round(1e6 * j.tried_barrier)} us at the start, so writes go ${j.past_cache ? "past" : "through"} the system's cache.`);
  return all;
}

function draw(r) {
  const last = r.samples[r.samples.length - 1] || {calls: 0, errors: 0, sent: 0, received: 0, p50: 0, p99: 0, barriers: 0, written: 0};
  const of = key => r.samples.map(s => s[key]);
  document.title = "Tansy " + r.volume;
  $("volume").textContent = r.volume;
  $("state").textContent = !r.problem ? r.state : r.volumes.length > 1 ? "not all volumes are well" : "refuses changes";
  $("state").className = "badge " + (r.problem ? "bad" : r.state);
  $("about").textContent = `${r.address ? "on " + r.address + ", " : ""}for ${age(r.uptime)}; release ${r.release}, revision ${r.revision.slice(0, 12)}`;
  $("problem").textContent = r.problem || "";
  $("problem").hidden = !r.problem;

  plot($("p-calls"), [["a", of("calls")], ["b", of("errors")]], count);
  legend($("k-calls"), [["ka", count(last.calls)], ["kb", count(last.errors) + " errors/s"]]);
  plot($("p-bytes"), [["a", of("sent")], ["b", of("received")]], n => bytes(n) + "/s");
  legend($("k-bytes"), [["ka", "to " + bytes(last.sent) + "/s"], ["kb", "from " + bytes(last.received) + "/s"]]);
  plot($("p-latency"), [["a", of("p50")], ["b", of("p99")]], duration);
  legend($("k-latency"), [["ka", duration(last.p50)], ["kb", duration(last.p99)]]);
  plot($("p-barriers"), [["a", of("barriers")]], count);
  legend($("k-barriers"), [["ka", count(last.barriers)], ["", bytes(last.written) + "/s written"]]);

  const several = r.volumes.length > 1;
  $("which").textContent = several ? "Volumes" : "Volume";
  $("volumes").replaceChildren(...r.volumes.flatMap(v => volume(v, several)));
  $("facts").textContent = `Memory of calls ${bytes(r.memory.calls)}, of large ones ${bytes(r.memory.receiving)}, waiting to be sent ${bytes(r.memory.queued)}` + (r.memory.resident ? `; of the process ${bytes(r.memory.resident)}` : "") + `. Refused: ${count(r.refused_conns)} connections, ${count(r.refused_calls)} calls. Open connections: ${r.tls.none} in the clear, ${r.tls.tls} with TLS, ${r.tls.mtls} with certificates; ${count(r.tls.failed)} handshakes failed.`;

  rows($("clients"), r.clients.map(c => [c.host, c.conns, count(c.calls), bytes(c.sent) + "/s", bytes(c.received) + "/s", c.in_progress, bytes(c.queued)]));
  $("more").textContent = r.more_clients ? `and ${r.more_clients} more` : r.clients.length ? "" : "None.";
  rows($("procs"), r.procs.map(p => [p.name, count(p.rate), duration(p.p50), duration(p.p99), count(p.calls), count(p.errors)]));
  $("warnings").replaceChildren(...r.warnings.map(w => {
    const li = document.createElement("li"), t = document.createElement("time");
    li.className = w.level;
    t.dateTime = w.time;
    t.textContent = new Date(w.time).toLocaleString();
    li.append(t, w.text);
    return li;
  }));
  $("lost").textContent = [
    r.warnings.length ? "" : "None.",
    r.lost_log ? `Messages lost, as nobody read the log in time: ${count(r.lost_log)}.` : "",
    r.counted_log ? `Not logged, as they were many of a kind: ${count(r.counted_log)}.` : "",
  ].filter(s => s).join(" ");
}

async function update() {
  try {
    const answer = await fetch("status.json");
    if (!answer.ok) throw new Error("HTTP " + answer.status);
    draw(await answer.json());
  } catch (e) {
    $("state").textContent = "no answer";
    $("state").className = "badge bad";
  }
  setTimeout(update, 2000);
}
update();
