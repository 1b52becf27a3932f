// An epoch of a DataLoader in virtual time: as figures/loader_epoch.py.

const oneDigit = (ms) => (ms * (1 + 1e-12)).toFixed(1).replace(/\.0$/, "");

function runEpoch(inputs) {
  const { batches, workers, prefetch, ordered, work, start, every } = inputs,
    fetches = Array.from({ length: workers }, () => []),
    works = [],
    waits = [],
    underway = [], // [time of arrival, task]
    arrived = new Set(),
    workerOf = [],
    owes = Array(workers).fill(0);
  let now = 0,
    sent = 0,
    received = 0,
    turn = 0,
    ready = 0;
  const fetchTime = (batch) => (every && batch % every === 0 ? inputs.slow : inputs.fetch);
  const train = (batch) => {
    works.push([now, now + work, batch]);
    now += work;
  };
  const nextWorker = () => {
    for (;;) {
      const worker = turn++ % workers;
      if (ordered || owes[worker] < prefetch) return worker;
    }
  };
  const send = () => {
    if (sent === batches) return;
    const worker = nextWorker(),
      begin = Math.max(now, fetches[worker].at(-1)?.[1] ?? start),
      end = begin + fetchTime(sent);
    fetches[worker].push([begin, end, sent]);
    underway.push([end, sent]);
    workerOf[sent++] = worker;
    owes[worker] += 1;
  };
  const takeFirst = () => {
    let first = 0;
    underway.forEach(([time, task], i) => {
      const [best, other] = underway[first];
      if (time < best || (time === best && task < other)) first = i;
    });
    return underway.splice(first, 1)[0];
  };
  const nextBatch = () => {
    let batch = received;
    while (!(ordered && arrived.has(received))) {
      const [came, task] = takeFirst();
      if (came > now) {
        waits.push([now, came, task]);
        now = came;
      }
      arrived.add(task);
      batch = task;
      if (!ordered) break;
    }
    if (ordered) batch = received;
    ready = Math.max(ready, underway.filter(([end]) => end <= now).length + arrived.size);
    arrived.delete(batch);
    received += 1;
    owes[workerOf[batch]] -= 1;
    send();
    return batch;
  };
  if (workers) {
    for (let i = 0; i < prefetch * workers; i++) send();
    for (let i = 0; i < batches; i++) train(nextBatch());
  } else
    for (let batch = 0; batch < batches; batch++) {
      waits.push([now, now + fetchTime(batch), batch]);
      now += fetchTime(batch);
      train(batch);
    }
  return { fetches, works, waits, now, ready };
}

function sentenceOf(inputs, { now }, waited, order) {
  const { batches, workers } = inputs,
    other = oneDigit(runEpoch({ ...inputs, workers: workers + 1 }).now);
  let say =
    `${batches} batch${batches === 1 ? "" : "es"} with ${workers} worker${workers === 1 ? "" : "s"} take${batches === 1 ? "s" : ""} ${oneDigit(now)} ms; ` +
    `the training waits for ${oneDigit(waited)} ms of them. `;
  say += other === oneDigit(now) ? "One worker more changes nothing." : `With one worker more: ${other} ms.`;
  if (order.some((batch, i) => i && batch < order[i - 1])) say += " The batches come in another order than the sampler's.";
  return say;
}

const model = (inputs) => {
  const epoch = runEpoch(inputs),
    waited = epoch.waits.reduce((sum, [start, end]) => sum + (end - start), 0),
    order = epoch.works.map(([, , batch]) => batch);
  return {
    waits: epoch.waits, works: epoch.works, lanes: epoch.fetches, order, total: epoch.now, waited, ready: epoch.ready,
    say: sentenceOf(inputs, epoch, waited, order),
  }; // prettier-ignore
};
