// Copyright The Setpoint Authors.
// SPDX-License-Identifier: Apache-2.0

package journal

import (
	"bytes"
	"cmp"
	"encoding/binary"
	"errors"
	"slices"

	"go.etcd.io/bbolt"
	berrors "go.etcd.io/bbolt/errors"
)

// stage is a transaction that writes, with what will be true of selections and sinks when
// it has succeeded.
type stage struct {
	j       *Journal
	tx      *bbolt.Tx
	buckets map[record]openBucket
	arena   []byte // holds values until the transaction ends, as bbolt asks
	keys    []byte

	selections map[string]selection
	sinks      map[string]queue
	dropped    map[string]bool // selections
	removed    map[string]bool // sinks
	added      map[string]bool // sinks with something new
	left       map[string]bool // sinks that something left
	changed    bool
	batches    uint64
}

func (j *Journal) newStage(tx *bbolt.Tx) *stage {
	return &stage{
		j: j, tx: tx, buckets: map[record]openBucket{}, arena: j.arena,
		selections: map[string]selection{}, sinks: map[string]queue{},
		dropped: map[string]bool{}, removed: map[string]bool{}, added: map[string]bool{}, left: map[string]bool{},
	}
}

// apply makes the changes of one request. That a sink is full is an error of the request
// and not of the transaction.
func (s *stage) apply(r *request) error {
	if r.overflow == Block && !s.fits(r) {
		return nil
	}
	s.batches++
	if len(r.ops) > 64 {
		s.arena = slices.Grow(s.arena, len(r.ops)*64)
	}
	for _, i := range order(r.ops) {
		if err := s.do(r, &r.ops[i]); err != nil {
			return err
		}
	}
	return nil
}

// order returns the order in which changes are made. Pages fill up best, and are found
// fastest, when objects come in the order of their keys; what becomes of one object, of a
// selection and of a sink stays in the order in which it was asked for.
func order(ops []op) []int {
	n := make([]int, len(ops))
	for i := range n {
		n[i] = i
	}
	for start := 0; start < len(ops); {
		end := start
		for end < len(ops) && (ops[end].verb == opSeen || ops[end].verb == opForget) {
			end++
		}
		slices.SortStableFunc(n[start:end], func(a, b int) int {
			x, y := &ops[a], &ops[b]
			return cmp.Or(cmp.Compare(x.name, y.name), cmp.Compare(x.key.Namespace, y.key.Namespace), cmp.Compare(x.key.Name, y.key.Name))
		})
		start = end + 1
	}
	return n
}

// fits reports whether all sinks have room for the events of a request, and makes it an
// error of the request if one has none. A sink for which nothing waits has room for any
// batch.
func (s *stage) fits(r *request) bool {
	type more struct {
		events int
		bytes  int64
	}
	var wanted map[string]more
	for i := range r.ops {
		if o := &r.ops[i]; o.verb == opEvent {
			if wanted == nil {
				wanted = map[string]more{}
			}
			m := wanted[o.name]
			wanted[o.name] = more{m.events + 1, m.bytes + entrySize(o.id, o.data)}
		}
	}
	for sink, m := range wanted {
		q := s.queue(sink)
		if q.waiting > 0 && (q.waiting+m.events > s.j.options.Limit || q.bytes+m.bytes > s.j.options.LimitBytes) {
			s.j.state.Lock()
			defer s.j.state.Unlock()
			r.err = &FullError{Sink: sink, Waiting: q.waiting, Bytes: q.bytes, Room: s.j.signalsOf(sink).room}
			return false
		}
	}
	return true
}

func (s *stage) do(r *request, o *op) error {
	switch o.verb {
	case opSeen, opForget:
		return s.object(o)
	case opVersion:
		return s.version(o)
	case opDrop:
		return s.drop(o)
	case opEvent:
		return s.event(r, o)
	case opAck, opDiscard:
		return s.ack(o)
	default:
		return s.remove(r, o)
	}
}

func (s *stage) object(o *op) error {
	b, err := s.bucket(bucketObjects, o.name, o.verb == opSeen)
	if b.Bucket == nil || err != nil {
		return err
	}
	s.keys = appendKey(s.keys[:0], o.key)
	there := b.Get(s.keys)
	sel := s.selection(o.name)
	if o.verb == opForget {
		if there == nil {
			return nil
		}
		sel.objects--
		s.selections[o.name], s.changed = sel, true
		return b.Delete(s.keys)
	}
	start := len(s.arena)
	s.arena = appendSeen(s.arena, o.seen, b.in, s.keys)
	value := s.arena[start:]
	if bytes.Equal(there, value) {
		s.arena = s.arena[:start]
		return nil
	}
	if there == nil {
		sel.objects++
	}
	delete(s.dropped, o.name)
	s.selections[o.name], s.changed = sel, true
	return b.Put(s.keys, value)
}

func (s *stage) version(o *op) error {
	sel := s.selection(o.name)
	if sel.known && sel.version == o.id {
		return nil
	}
	sel.known, sel.version = true, o.id
	delete(s.dropped, o.name)
	s.selections[o.name], s.changed = sel, true
	return s.tx.Bucket([]byte(bucketSelections)).Put([]byte(o.name), versionRecord(o.id, o.name))
}

func (s *stage) drop(o *op) error {
	s.selections[o.name], s.dropped[o.name] = selection{}, true
	if err := s.tx.Bucket([]byte(bucketSelections)).Delete([]byte(o.name)); err != nil {
		return err
	}
	return s.deleteBucket(bucketObjects, o.name)
}

func (s *stage) event(r *request, o *op) error {
	q := s.queue(o.name)
	size := entrySize(o.id, o.data)
	full := q.waiting >= s.j.options.Limit || q.waiting > 0 && q.bytes+size > s.j.options.LimitBytes
	s.changed = true
	delete(s.removed, o.name)
	if full && r.overflow == DropNew {
		if !slices.Contains(r.dropped, o.name) {
			r.dropped = append(r.dropped, o.name)
		}
		q.dropped++
		s.sinks[o.name] = q
		return nil
	}
	b, err := s.bucket(bucketOutbox, o.name, true)
	if err != nil {
		return err
	}
	key := seqKey(q.next)
	start := len(s.arena)
	s.arena = appendEvent(s.arena, s.j.options.Clock(), o.id, o.data, b.in, key)
	q.next++
	q.waiting++
	q.bytes += size
	s.sinks[o.name], s.added[o.name] = q, true
	return b.Put(key, s.arena[start:])
}

func (s *stage) ack(o *op) error {
	b, err := s.bucket(bucketOutbox, o.name, false)
	if b.Bucket == nil || err != nil {
		return err
	}
	q := s.queue(o.name)
	for _, seq := range o.seqs {
		s.keys = binary.BigEndian.AppendUint64(s.keys[:0], seq)
		value := b.Get(s.keys)
		if value == nil {
			continue // said before
		}
		q.waiting--
		if e, err := decodeEvent(value, b.in, s.keys); err == nil {
			q.bytes -= entrySize(e.ID, e.Data)
		}
		if o.verb == opDiscard {
			q.dropped++
		}
		s.left[o.name], s.changed = true, true
		if err := b.Delete(s.keys); err != nil {
			return err
		}
	}
	if q.waiting == 0 {
		q.bytes = 0
	}
	if s.left[o.name] {
		s.sinks[o.name] = q
	}
	return nil
}

func (s *stage) remove(r *request, o *op) error {
	r.taken = s.queue(o.name).waiting
	s.sinks[o.name], s.removed[o.name], s.left[o.name] = queue{next: 1}, true, true
	delete(s.added, o.name)
	if err := s.tx.Bucket([]byte(bucketSinks)).Delete([]byte(o.name)); err != nil {
		return err
	}
	return s.deleteBucket(bucketOutbox, o.name)
}

// finish writes what is kept of each sink.
func (s *stage) finish() error {
	if !s.changed {
		return errNothing
	}
	sinks := s.tx.Bucket([]byte(bucketSinks))
	for name, q := range s.sinks {
		if s.removed[name] {
			continue
		}
		if err := sinks.Put([]byte(name), sinkRecord(q.next, q.dropped, name)); err != nil {
			return err
		}
	}
	return nil
}

func (s *stage) selection(name string) selection {
	if sel, ok := s.selections[name]; ok {
		return sel
	}
	s.j.state.RLock()
	defer s.j.state.RUnlock()
	return s.j.selections[name]
}

func (s *stage) queue(name string) queue {
	q, ok := s.sinks[name]
	if !ok {
		s.j.state.RLock()
		q = s.j.sinks[name]
		s.j.state.RUnlock()
	}
	q.next = max(q.next, 1)
	return q
}

// openBucket is the bucket of a selection's objects or of a sink's events.
type openBucket struct {
	*bbolt.Bucket
	in place
}

// bucket returns a bucket, without a Bucket if it is not there.
func (s *stage) bucket(parent, name string, create bool) (openBucket, error) {
	where := record{bucket: parent, sub: name}
	if b, ok := s.buckets[where]; ok {
		return b, nil
	}
	p := s.tx.Bucket([]byte(parent))
	b := p.Bucket([]byte(name))
	if b == nil {
		if !create {
			return openBucket{}, nil
		}
		var err error
		if b, err = p.CreateBucket([]byte(name)); err != nil {
			return openBucket{}, err
		}
	}
	kind := ofObject
	if parent == bucketOutbox {
		// Only the end grows, so pages need no room for what comes between.
		kind, b.FillPercent = ofEvent, 0.95
	}
	opened := openBucket{b, placeOf(kind, name)}
	s.buckets[where] = opened
	return opened, nil
}

func (s *stage) deleteBucket(parent, name string) error {
	s.changed = true
	delete(s.buckets, record{bucket: parent, sub: name})
	err := s.tx.Bucket([]byte(parent)).DeleteBucket([]byte(name))
	if errors.Is(err, berrors.ErrBucketNotFound) {
		return nil
	}
	return err
}
