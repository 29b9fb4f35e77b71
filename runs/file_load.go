// Copyright The Setpoint Authors.
// SPDX-License-Identifier: Apache-2.0

package runs

import (
	"encoding/binary"
	"math"
	"time"
)

// loader puts the runs of files into a record.
type loader struct {
	record  *Record
	at      map[uint64]uint64 // positions of entries by number
	numbers uint64            // that may be in use
}

// file reads a file. It returns its words, and the offset up to which it is in order.
func (l *loader) file(s *segmentFile, content []byte) (words []string, end int) {
	end = s.blocks(content, func(body []byte) bool {
		before := len(words)
		d := decoder{b: body, words: words}
		for len(d.b) > 0 && d.err == nil {
			l.item(&d)
		}
		if words = d.words; d.err != nil { // our checksum, and not our form
			words = words[:before]
		}
		return d.err == nil
	})
	return words, end
}

// item reads one item of a body.
func (l *loader) item(d *decoder) {
	switch d.uint() {
	case itemNumbers:
		if n := d.uint(); d.err == nil {
			l.numbers = n
		}
	case itemWord:
		if word := d.text(); d.err == nil {
			d.words = append(d.words, word)
		}
	case itemRun:
		of := decoder{b: d.take(d.count()), words: d.words}
		if run := of.run(); of.err != nil {
			d.fail()
		} else if d.err == nil {
			l.add(&run)
		}
	case itemChange:
		number := d.uint()
		var changed Run
		d.changing(&changed)
		if d.err == nil {
			l.change(number, &changed)
		}
	default:
		d.fail()
	}
}

// run reads a run as fileWriter.run writes it.
func (d *decoder) run() Run {
	number := d.uint()
	outcome := d.take(1)
	all := outcomes()
	if len(outcome) == 0 || int(outcome[0]) >= len(all) {
		d.fail()
		return Run{}
	}
	fixed := Run{Number: number, Outcome: all[outcome[0]], Began: d.time()}
	d.changing(&fixed)
	run := d.payload()
	run.Number, run.Outcome, run.Began = fixed.Number, fixed.Outcome, fixed.Began
	run.Runs, run.Last, run.NextLook, run.LastVersion, run.Settled = fixed.Runs, fixed.Last, fixed.NextLook, fixed.LastVersion, fixed.Settled
	return run
}

func (d *decoder) time() time.Time { return time.Unix(0, int64(d.uint())) }

// changing reads what may change of a run.
func (d *decoder) changing(run *Run) {
	run.Runs = int(min(d.uint(), math.MaxUint32))
	run.Last = d.time()
	if next := d.uint(); next != 0 {
		at := time.Unix(0, int64(next))
		run.NextLook = &at
	}
	run.LastVersion = d.version()
	run.Settled = time.Duration(min(d.uint(), math.MaxUint32)) * time.Microsecond
}

// add puts a run into the record. A run that is there already was written again, as it was about to be dropped from the
// memory of its process.
func (l *loader) add(run *Run) {
	r := l.record
	var loop *Loop
	if run.Object.Kind != "" {
		loop = r.Loop(run.Controller, run.Object.Group, run.Object.Kind)
	} else {
		loop = r.Loop(run.Controller, "", "")
	}
	of := entry{loop: *loop, key: run.Object.Ref().Key, text: run.Key}
	if run.Object.Kind != "" {
		of.hash = r.index.key(loop.hash, of.key)
	} else {
		of.hash = r.index.text(loop.hash, of.text)
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	if at, known := l.at[run.Number]; known && r.kept.has(at) {
		r.kept.at(at)[atFlags] |= flagMoved
		r.kept.segmentOf(at).entries--
		r.restored--
	}
	e := &r.encoder
	if e.restored(&r.index, &of, run, r.kept.most()); len(e.b) > r.kept.size {
		return // the record of the earlier process was larger
	}
	if r.restored == 0 && run.Number > 1 {
		r.horizon = run.Began.UnixNano() - 1 // earlier ones are not in the files
	}
	putChanging(e.b, run)
	binary.LittleEndian.PutUint64(e.b[atNumber:], run.Number)
	binary.LittleEndian.PutUint64(e.b[atBegan:], uint64(run.Began.UnixNano()))
	at := r.kept.add(e.b, r.dropping)
	l.at[run.Number] = at
	l.numbers = max(l.numbers, run.Number)
	r.restored++
}

// change puts what has changed of a run into the record.
func (l *loader) change(number uint64, changed *Run) {
	r := l.record
	r.mu.Lock()
	defer r.mu.Unlock()
	if at, known := l.at[number]; known && r.kept.has(at) {
		putChanging(r.kept.at(at), changed)
		segment := r.kept.segmentOf(at)
		segment.last = max(segment.last, changed.Last.UnixNano())
	}
}

// putChanging writes what may change of a run into its entry.
func putChanging(entry []byte, run *Run) {
	binary.LittleEndian.PutUint32(entry[atRuns:], uint32(run.Runs))
	binary.LittleEndian.PutUint64(entry[atLast:], uint64(run.Last.UnixNano()))
	next := int64(0)
	if run.NextLook != nil {
		next = run.NextLook.UnixNano()
	}
	binary.LittleEndian.PutUint64(entry[atNext:], uint64(next))
	binary.LittleEndian.PutUint64(entry[atVersion:], number(run.LastVersion))
	binary.LittleEndian.PutUint32(entry[atSettled:], uint32(run.Settled.Microseconds()))
}
