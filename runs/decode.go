// Copyright The Setpoint Authors.
// SPDX-License-Identifier: Apache-2.0

package runs

import (
	"encoding/binary"
	"encoding/hex"
	"errors"
	"time"

	"k8s.io/apimachinery/pkg/types"
)

// errDamaged is the error of an entry that cannot be decoded.
var errDamaged = errors.New("the entry of a run is damaged")

// header reads the fields of fixed size of an entry that the ring has.
type header []byte

func (h header) moved() bool          { return h[atFlags]&flagMoved != 0 }
func (h header) restored() bool       { return h[atFlags]&flagRestored != 0 }
func (h header) postings() int        { return int(binary.LittleEndian.Uint16(h[atPostings:])) }
func (h header) key() uint64          { return h.uint64(atKey) }
func (h header) like() uint64         { return h.uint64(atLike) }
func (h header) last() int64          { return int64(h.uint64(atLast)) }
func (h header) uint64(at int) uint64 { return binary.LittleEndian.Uint64(h[at:]) }
func (h header) uint32(at int) uint32 { return binary.LittleEndian.Uint32(h[at:]) }

// decoder reads the payload of an entry. After the first error it reads zero values.
type decoder struct {
	words []string
	b     []byte
	err   error
}

// decode returns the run of an entry.
func decode(entry []byte, words []string) (Run, error) {
	if len(entry) < headerSize {
		return Run{}, errDamaged
	}
	h := header(entry)
	begin := headerSize + postingSize*max(h.postings()-1, 0)
	size := int(h.uint32(atSize))
	all := outcomes()
	if size > len(entry) || begin > size || int(entry[atOutcome]) >= len(all) {
		return Run{}, errDamaged
	}
	d := decoder{words: words, b: entry[begin:size]}
	run := d.payload()
	run.Number = h.uint64(atNumber)
	run.Outcome = all[entry[atOutcome]]
	run.Began = time.Unix(0, int64(h.uint64(atBegan)))
	run.Last = time.Unix(0, h.last())
	if next := int64(h.uint64(atNext)); next != 0 {
		at := time.Unix(0, next)
		run.NextLook = &at
	}
	run.LastVersion = versionText(h.uint64(atVersion))
	run.Runs = int(h.uint32(atRuns))
	run.Settled = time.Duration(h.uint32(atSettled)) * time.Microsecond
	run.Restored = h.restored()
	return run, d.err
}

func (d *decoder) payload() (run Run) {
	run.Controller = d.word()
	run.Object.Group = d.word()
	run.Object.Kind = d.word()
	if run.Object.Kind != "" {
		run.Object.Namespace = d.word()
		run.Object.Name = d.text()
		run.Key = run.Object.Ref().Key.String()
	} else {
		run.Key = d.text()
	}
	run.Wait.Priority = int(d.uint()) + minPriority
	run.Attempt = int(d.uint())
	run.Wait.Delay = time.Duration(d.uint())
	run.Wait.Before = time.Duration(d.uint())
	run.Wait.Queue = time.Duration(d.uint())
	run.Took = time.Duration(d.uint())
	for form := d.form(); form != causeNone; form = d.form() {
		c := Cause{Source: d.word(), Verb: d.word()}
		if form == causeOwn {
			c.Object = run.Object
			c.Object.UID = types.UID(d.uid())
		} else {
			c.Object = d.object()
		}
		c.From, c.Version = d.version(), d.version()
		run.Causes = append(run.Causes, c)
	}
	run.More = int(d.uint())
	run.Error = d.text()
	run.Reasons = d.reasons()
	for d.more() {
		run.Writes = append(run.Writes, d.write())
	}
	run.MoreWrites = int(d.uint())
	return run
}

func (d *decoder) reasons() (all []Reason) {
	for range d.count() {
		r := Reason{Code: d.word(), Text: d.word(), Normal: d.more()}
		for range d.count() {
			r.Params = append(r.Params, Param{Name: d.word(), Value: d.text()})
		}
		r.Ends = d.text()
		r.Until = d.object()
		r.About = d.object()
		all = append(all, r)
	}
	return all
}

func (d *decoder) write() Write {
	w := Write{Verb: d.word(), Object: d.object(), Subresource: d.word(), Version: d.version(), Code: int(d.uint())}
	w.Unknown = d.more()
	w.Manager = d.word()
	for range d.count() {
		w.Fields = append(w.Fields, d.word())
	}
	w.MoreFields = int(d.uint())
	return w
}

func (d *decoder) object() Object {
	return Object{Group: d.word(), Kind: d.word(), Namespace: d.word(), Name: d.text(), UID: types.UID(d.uid())}
}

func (d *decoder) fail() { d.err, d.b = errDamaged, nil }

func (d *decoder) uint() uint64 {
	n, size := binary.Uvarint(d.b)
	if size <= 0 {
		d.fail()
		return 0
	}
	d.b = d.b[size:]
	return n
}

// count reads the length of a list. Each element takes a byte at least.
func (d *decoder) count() int {
	n := d.uint()
	if n > uint64(len(d.b)) {
		d.fail()
		return 0
	}
	return int(n)
}

func (d *decoder) take(n int) []byte {
	if n > len(d.b) {
		d.fail()
		return nil
	}
	taken := d.b[:n]
	d.b = d.b[n:]
	return taken
}

// more reads whether another element follows.
func (d *decoder) more() bool { return d.form() != 0 }

// form reads which form what follows has. It is 0 at the end.
func (d *decoder) form() byte {
	if b := d.take(1); len(b) == 1 {
		return b[0]
	}
	return 0
}

func (d *decoder) text() string { return string(d.take(d.count())) }

func (d *decoder) word() string {
	n := d.uint()
	if n == 0 {
		if d.err != nil {
			return ""
		}
		return d.text()
	}
	if n > uint64(len(d.words)) {
		d.fail()
		return ""
	}
	return d.words[n-1]
}

func (d *decoder) version() string { return versionText(d.uint()) }

func (d *decoder) uid() string {
	form := d.take(1)
	switch {
	case len(form) == 0 || form[0] == uidNone:
		return ""
	case form[0] == uidText:
		return d.text()
	case form[0] != uidBytes:
		d.fail()
		return ""
	}
	raw := d.take(16)
	if raw == nil {
		return ""
	}
	text := make([]byte, 0, 36)
	for i, part := range [...]int{4, 2, 2, 2, 6} {
		if i > 0 {
			text = append(text, '-')
		}
		text = hex.AppendEncode(text, raw[:part])
		raw = raw[part:]
	}
	return string(text)
}
