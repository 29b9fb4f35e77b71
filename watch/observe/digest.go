// Copyright The Setpoint Authors.
// SPDX-License-Identifier: Apache-2.0

package observe

import (
	"bytes"
	"crypto/hmac"
	"crypto/sha256"
	"encoding/binary"
	"fmt"
	"maps"
	"math"
	"slices"
	"strings"

	"github.com/setpoint-io/setpoint/watch/event"
)

// Digest is what a cursor keeps of an object in order to notice later that it changed. Its first
// half is of everything but the status, bookkeeping (managedFields, resourceVersion, generation) and
// heartbeats. Its second half is of the status without heartbeats.
type Digest [16]byte

func (d *Digest) halves() (content, status []byte) { return d[:len(d)/2], d[len(d)/2:] }

// DigestOf returns the digest of an object, which is a JSON tree with its apiVersion and kind.
// Each half is the first quarter of an HMAC-SHA256 of a canonical encoding: objects that
// package diff calls equal have equal digests. The key is kept with the digests and like them;
// without it, a short secret cannot be found out by trying.
func DigestOf(object map[string]any, key []byte) Digest {
	apiVersion, _ := object["apiVersion"].(string)
	kind, _ := object["kind"].(string)
	group, _, ok := strings.Cut(apiVersion, "/")
	if !ok {
		group = ""
	}
	b := beatsOf(group, kind)
	mac := hmac.New(sha256.New, key)
	c := canonical{out: make([]byte, 0, 8<<10), names: make([]string, 0, 64)}
	var d Digest
	inContent, inStatus := d.halves()

	content := maps.Clone(object)
	delete(content, "status")
	c.value(content, b)
	mac.Write(c.out)
	copy(inContent, mac.Sum(c.out[:0]))

	mac.Reset()
	c.out = c.out[:0]
	if status, ok := object["status"]; ok {
		c.value(status, b.field("status"))
	}
	mac.Write(c.out)
	copy(inStatus, mac.Sum(c.out[:0]))
	return d
}

// Classes returns what differs between two digests of an object. Metadata is part of the
// content here. If nothing differs but the version of the object does, the change was a
// heartbeat or of the version alone. Digests cannot tell these apart: it is both.
func Classes(old, new Digest) []event.Class { //nolint:predeclared // old and new are the words
	oldContent, oldStatus := old.halves()
	newContent, newStatus := new.halves()
	var out []event.Class
	if !bytes.Equal(oldContent, newContent) {
		out = append(out, event.Content)
	}
	if !bytes.Equal(oldStatus, newStatus) {
		out = append(out, event.Status)
	}
	if out == nil {
		out = []event.Class{event.Heartbeat, event.Version}
	}
	return out
}

// canonical writes trees as bytes, equal trees as equal bytes and others as others: each
// value begins with a letter for its type, texts with their length, and objects are sorted
// by name.
type canonical struct {
	out   []byte
	names []string // a stack of the names of the objects that are being written
}

// fields writes an object without its heartbeats and bookkeeping. It reports whether there is
// anything left of the object: not if it held nothing else.
func (c *canonical) fields(m map[string]any, b *beats) bool {
	first := len(c.names)
	for name := range m {
		c.names = append(c.names, name)
	}
	slices.Sort(c.names[first:])
	c.out = append(c.out, '{')
	start, skipped := len(c.out), false
	for i := first; i < first+len(m); i++ {
		name := c.names[i]
		f := b.field(name)
		before := len(c.out)
		if f == nil || !f.beat {
			c.text(name)
			if c.value(m[name], f) {
				continue
			}
		}
		c.out, skipped = c.out[:before], true
	}
	c.names = c.names[:first]
	empty := len(c.out) == start
	c.out = append(c.out, '}')
	return !empty || !skipped
}

// value writes a value, and reports whether there is anything left of it.
func (c *canonical) value(v any, b *beats) bool {
	switch v := v.(type) {
	case nil:
		c.out = append(c.out, 'n')
	case string:
		if b != nil && b.leader {
			v = holder(v)
		}
		c.text(v)
	case bool:
		if v {
			c.out = append(c.out, 't')
		} else {
			c.out = append(c.out, 'f')
		}
	case map[string]any:
		return c.fields(v, b)
	case []any:
		c.out = append(c.out, '[')
		for _, e := range v {
			c.value(e, b.element())
		}
		c.out = append(c.out, ']')
	case int64:
		c.number('i', uint64(v))
	case int:
		c.number('i', uint64(v))
	case float64:
		c.float(v)
	default:
		c.out = append(c.out, '?') // no value of JSON
		c.text(fmt.Sprintf("%T %v", v, v))
	}
	return true
}

func (c *canonical) text(s string) {
	c.out = append(c.out, 's')
	c.out = binary.AppendUvarint(c.out, uint64(len(s)))
	c.out = append(c.out, s...)
}

func (c *canonical) number(letter byte, bits uint64) {
	c.out = append(c.out, letter)
	c.out = binary.LittleEndian.AppendUint64(c.out, bits)
}

// float writes a number; a whole one as the integer that it equals.
func (c *canonical) float(f float64) {
	switch {
	case f == math.Trunc(f) && f >= math.MinInt64 && f < math.MaxInt64:
		c.number('i', uint64(int64(f)))
	case math.IsNaN(f):
		c.number('d', math.Float64bits(math.NaN()))
	default:
		c.number('d', math.Float64bits(f))
	}
}
