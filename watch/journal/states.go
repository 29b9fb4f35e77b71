// Copyright The Setpoint Authors.
// SPDX-License-Identifier: Apache-2.0

package journal

// kept returns the message of a change as the journal keeps it: without the states of objects, and
// not at all if it is a dictionary of them, unless the options say otherwise. A message that cannot
// be decoded stays as it is.
func (j *Journal) kept(message []byte) []byte {
	if j.options.States {
		return message
	}
	var c change
	if c.decode(message) != nil {
		return message
	}
	switch {
	case c.verb == setDictionary:
		return nil
	case c.verb == seeObject && len(c.state) > 0:
		return withoutState(&c)
	}
	return message
}

// withoutState returns the message of an object without its state.
func withoutState(c *change) []byte {
	var b Batch
	key, seen := c.seen()
	seen.State = ""
	b.Seen(string(c.name), key, seen)
	return b.encoded
}

// bounded returns the message of an object as it is written: without its state where there is no
// room for more of them. The bound is on the bytes of all objects, most of which are states.
func (d *draft) bounded(c *change, message []byte) []byte {
	if len(c.state) == 0 {
		return message
	}
	if size := d.state.objects + int64(len(d.frame)); size <= d.options.limitState {
		d.full = false
		return message
	}
	if !d.full {
		d.full = true
		d.log.Warn("the journal has no room for more states of objects; of further objects it keeps the digests alone", "bytes", d.options.limitState)
	}
	return withoutState(c)
}
