// Copyright The Setpoint Authors.
// SPDX-License-Identifier: Apache-2.0

package journal

import (
	"encoding/binary"
	"errors"
	"fmt"
	"os"
	"slices"
	"strconv"
	"strings"
)

// The buckets of the file. docs/watch-journal.md describes what is in them.
const (
	bucketFormat     = "about" // comes first: see survey
	bucketSelections = "selections"
	bucketObjects    = "objects"
	bucketSinks      = "sinks"
	bucketOutbox     = "outbox"

	keyFormat = "format"
	keyDigest = "key"

	format      = 1
	digestBytes = 32
)

var allBuckets = []string{bucketFormat, bucketObjects, bucketOutbox, bucketSelections, bucketSinks}

// selection is what is known of a watched selection without reading the file.
type selection struct {
	version string
	known   bool
	objects int
}

// queue is what is known of a sink's outbox without reading the file.
type queue struct {
	next    uint64 // number of the next event
	dropped uint64
	waiting int
	bytes   int64
}

// record says where a record is.
type record struct{ bucket, sub, key string }

// contents is the file as it is found when it is opened.
type contents struct {
	key        []byte
	version    int
	found      []string
	selections map[string]selection
	sinks      map[string]queue
	bad        []record
	reason     error // why the first of bad is
	// headerLost says that the newer one of the headers may not be readable, and that the
	// last commit may not be there.
	headerLost bool
	leaked     int

	// The bucket that was read last, for the checksums of its records.
	lastKind byte
	lastSub  string
	last     place
}

func (c *contents) in(kind byte, sub string) place {
	if kind != c.lastKind || sub != c.lastSub {
		c.lastKind, c.lastSub, c.last = kind, sub, placeOf(kind, sub)
	}
	return c.last
}

func newContents() *contents {
	return &contents{selections: map[string]selection{}, sinks: map[string]queue{}}
}

// survey reads the whole file, without bbolt. A structureError says that it cannot be
// used; single records that cannot be are in contents.bad.
func survey(f *os.File) (*contents, error) {
	info, err := f.Stat()
	if err != nil {
		return nil, err
	}
	c := newContents()
	p, err := walkPages(f, info.Size(), c.visit)
	if errors.Is(err, ErrNewer) {
		return nil, err
	}
	// The format comes first in the file: what a newer one does otherwise is no damage.
	if c.version > format {
		return nil, fmt.Errorf("%w: its format is %d, this reads %d", ErrNewer, c.version, format)
	}
	if err != nil {
		return nil, err
	}
	if c.version == 0 || len(c.key) != digestBytes {
		return nil, damaged("it is not a journal of setpoint watch, or its format and key are damaged")
	}
	if !slices.Equal(c.found, allBuckets) {
		return nil, damaged("it has the buckets %q, and should have %q", c.found, allBuckets)
	}
	c.headerLost, c.leaked = p.spareHeader, p.leaked
	c.mend()
	return c, nil
}

func (c *contents) visit(buckets []string, key, value []byte, isBucket bool) error {
	if len(buckets) == 0 {
		c.found = append(c.found, string(key))
		if !isBucket {
			return damaged("%q should be a bucket", key)
		}
		return nil
	}
	bucket, sub := buckets[0], ""
	nested := bucket == bucketObjects || bucket == bucketOutbox
	if isBucket != (nested && len(buckets) == 1) {
		return damaged("bucket %q: %q should not be there", buckets, key)
	}
	if isBucket {
		name := string(key)
		if bucket == bucketObjects {
			c.selections[name] = selection{}
		} else {
			c.sinks[name] = queue{next: 1}
		}
		return nil
	}
	if nested {
		sub = buckets[1]
	}
	if err := c.record(bucket, sub, key, value); err != nil {
		if bucket == bucketFormat {
			return damaged("its %q: %v", key, err)
		}
		c.bad = append(c.bad, record{bucket, sub, string(key)})
		if c.reason == nil {
			c.reason = fmt.Errorf("bucket %q, key %q: %w", strings.Join(buckets, "/"), key, err)
		}
	}
	return nil
}

func (c *contents) record(bucket, sub string, key, value []byte) error {
	switch bucket {
	case bucketFormat:
		return c.preamble(string(key), value)
	case bucketSelections:
		version, err := decodeVersion(value, string(key))
		if err != nil {
			return err
		}
		s := c.selections[string(key)]
		s.version, s.known = version, true
		c.selections[string(key)] = s
	case bucketObjects:
		if _, err := parseSeen(value, c.in(ofObject, sub), key); err != nil || !isKey(key) {
			return errDamagedRecord
		}
		s := c.selections[sub]
		s.objects++
		c.selections[sub] = s
	case bucketSinks:
		next, dropped, err := decodeSink(value, string(key))
		if err != nil {
			return err
		}
		q := c.sinks[string(key)]
		q.next, q.dropped = max(q.next, next), dropped
		c.sinks[string(key)] = q
	case bucketOutbox:
		e, err := decodeEvent(value, c.in(ofEvent, sub), key)
		if err != nil {
			return err
		}
		q := c.sinks[sub]
		q.next = max(q.next, e.Seq+1)
		q.waiting++
		q.bytes += entrySize(e.ID, e.Data)
		c.sinks[sub] = q
	}
	return nil
}

func (c *contents) preamble(key string, value []byte) error {
	body, err := unseal(value, inFormat, []byte(key))
	if err != nil {
		return err
	}
	switch key {
	case keyFormat:
		if c.version, err = strconv.Atoi(string(body)); err != nil || c.version < 1 {
			return errors.New("it is no number")
		}
		if c.version > format {
			return ErrNewer // ends the walk; survey says which
		}
	case keyDigest:
		c.key = slices.Clone(body)
	}
	return nil
}

// mend makes what follows from damaged records safe. A selection whose version is lost is
// compared with a list rather than forgotten: what changed is then told all the same.
func (c *contents) mend() {
	for _, r := range c.bad {
		if r.bucket != bucketSelections {
			continue
		}
		c.selections[r.key] = selection{objects: c.selections[r.key].objects}
		for name, s := range c.selections {
			s.known = true
			c.selections[name] = s
		}
	}
}

// damage describes the damaged records.
func (c *contents) damage(path string) *Damage {
	d := &Damage{Path: path, Reason: c.reason}
	for _, r := range c.bad {
		switch r.bucket {
		case bucketObjects:
			d.Objects++
		case bucketOutbox:
			d.Events++
		case bucketSelections:
			d.Cursors++
		case bucketSinks:
			d.Sinks++
		}
	}
	return d
}

// entrySize is what an event counts for in the limit of bytes.
func entrySize(id string, data []byte) int64 { return int64(len(id) + len(data)) }

func seqKey(seq uint64) []byte { return binary.BigEndian.AppendUint64(nil, seq) }
