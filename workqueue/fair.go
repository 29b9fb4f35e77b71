// Copyright The Setpoint Authors.
// SPDX-License-Identifier: Apache-2.0

package workqueue

// level holds the ready keys of one priority: a ring of lanes, one for each
// group that has keys. The lane in front gives the next key and goes to the back.
type level[K comparable] struct {
	front, back *lane[K]

	// Exactly one of the two is used: lanes by group, or one for all, which is in the
	// ring whether it has keys or not.
	lanes map[string]*lane[K]
	only  *lane[K]

	spare *lane[K] // linked through next
}

// lane holds the ready keys of one group and priority in order of arrival.
type lane[K comparable] struct {
	level      *level[K]
	group      string
	keys       entryList[K]
	waiting    bool // in the ring
	prev, next *lane[K]
}

func newLevel[K comparable](fair bool) *level[K] {
	lv := new(level[K])
	if fair {
		lv.lanes = make(map[string]*lane[K])
	} else {
		lv.only = &lane[K]{level: lv, waiting: true}
		lv.front, lv.back = lv.only, lv.only
	}
	return lv
}

// next returns the entry that is handed out next. The level must have one.
func (lv *level[K]) next() *entry[K] { return lv.front.keys.front }

// lane returns the lane of a group, which is in the ring. The caller puts a key
// into it.
func (lv *level[K]) lane(group string) *lane[K] {
	if lv.only != nil {
		return lv.only
	}
	l := lv.lanes[group]
	if l == nil {
		if l = lv.spare; l != nil {
			lv.spare, l.next = l.next, nil
		} else {
			l = &lane[K]{level: lv}
		}
		l.group = group
		lv.lanes[group] = l
	}
	if !l.waiting {
		l.waiting = true
		lv.enter(l)
	}
	return l
}

// enter puts a lane at the back of the ring.
func (lv *level[K]) enter(l *lane[K]) {
	l.prev, l.next = lv.back, nil
	if lv.back == nil {
		lv.front = l
	} else {
		lv.back.next = l
	}
	lv.back = l
}

// unlink takes a lane out of the ring.
func (lv *level[K]) unlink(l *lane[K]) {
	if l.prev == nil {
		lv.front = l.next
	} else {
		l.prev.next = l.next
	}
	if l.next == nil {
		lv.back = l.prev
	} else {
		l.next.prev = l.prev
	}
	l.prev, l.next = nil, nil
}

// rotate ends the turn of a lane that still has keys.
func (lv *level[K]) rotate(l *lane[K]) {
	if lv.back != l {
		lv.unlink(l)
		lv.enter(l)
	}
}

// leave takes out a lane that has no keys, and reports whether the level has none now.
func (lv *level[K]) leave(l *lane[K]) bool {
	if lv.only != nil {
		return true
	}
	lv.unlink(l)
	l.waiting = false
	delete(lv.lanes, l.group)
	l.group = ""
	l.next, lv.spare = lv.spare, l
	return lv.front == nil
}
