// Copyright The Setpoint Authors.
// SPDX-License-Identifier: Apache-2.0

package nodelifecycle

import (
	"cmp"
	"iter"
	"slices"
	"sync"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"
)

// All nodes are checked several times in a NodeMonitorPeriod. A heartbeat counts from the
// check that notices it, so a node is found silent up to the time between two checks too
// late. An event for each renewal of a Lease would be exact. It would also cost half as
// much CPU time again as the checks and the cache together, because each event wakes a
// goroutine. Where a node's time is over in between, there is a look then, unless there
// has just been one.
const (
	looksInAPeriod  = 5
	atMostInAPeriod = 20
)

// monitor judges the health of all nodes over time: which are silent, which zones are
// down, and which nodes may be given a NoExecute taint. It reads no clock, sends no
// requests and writes nothing. It is safe for concurrent use.
type monitor struct {
	options Options

	mu     sync.Mutex
	nodes  map[string]*health
	zones  map[string]*zone
	looks  uint64    // how many there have been
	looked time.Time // when the last one was
	// seemsDown: no node is ready. allDown: and none of them only seems silent.
	seemsDown, allDown bool
}

func newMonitor(o Options) *monitor {
	return &monitor{options: o, nodes: map[string]*health{}, zones: map[string]*zone{}}
}

// verdict is what the monitor finds about one node.
type verdict struct {
	silent    bool // its conditions are to be turned Unknown
	noExecute noExecute
}

// findings is what came of a look.
type findings struct {
	appeared, gone []nodeID
	// attention names the nodes on which the monitor's verdict is new.
	attention []string
	// changed is set when the cluster as a whole went down or came back: the
	// verdict on every node is new.
	changed bool
	allDown bool
	// zones are all zones, and those that have lost their last node. It is empty without a
	// judgement.
	zones []census
	// again is when to look next.
	again time.Duration
}

type nodeID struct {
	name string
	uid  types.UID
}

// look takes in the state of all nodes. Without judge it goes no further: what it sees may
// be old.
func (m *monitor) look(nodes iter.Seq[sighting], judge bool, now time.Time) findings {
	m.mu.Lock()
	defer m.mu.Unlock()
	// A process that did not check for a long time, because it had no connection or no
	// processor, does not know which nodes were silent meanwhile. Looks may be meant to
	// be far apart.
	long := max(m.options.NodeMonitorGracePeriod/2, m.options.NodeMonitorPeriod)
	if gap := now.Sub(m.looked); !m.looked.IsZero() && gap > long {
		for _, h := range m.nodes {
			h.lives(now)
		}
	}
	m.looks, m.looked = m.looks+1, now

	f := findings{again: m.options.NodeMonitorPeriod / looksInAPeriod}
	if judge {
		for _, z := range m.zones {
			z.members, z.ready, z.notReady, z.presumed, z.waiting = 0, 0, 0, 0, nil
		}
	}
	for s := range nodes {
		h := m.lookAt(s, now, &f)
		if judge {
			m.judge(s, h, now, &f)
		}
	}
	for name, h := range m.nodes {
		if h.seen != m.looks {
			f.gone = append(f.gone, nodeID{name, h.uid})
			delete(m.nodes, name)
		}
	}
	if judge {
		m.judgeZones(now, &f)
		m.grant(&f)
		slices.Sort(f.attention)
	} else {
		f.allDown = m.allDown
	}
	return f
}

// lookAt takes in the state of one node.
func (m *monitor) lookAt(s sighting, now time.Time, f *findings) *health {
	h := m.nodes[s.name]
	switch {
	case h == nil || h.uid != s.uid:
		if h != nil {
			f.gone = append(f.gone, nodeID{s.name, h.uid})
		}
		f.appeared = append(f.appeared, nodeID{s.name, s.uid})
		h = newHealth(s, now)
		m.nodes[s.name] = h
	default:
		h.look(s, now)
	}
	h.seen = m.looks
	return h
}

// judge finds whether one node is silent and whether it is down, and counts it.
func (m *monitor) judge(s sighting, h *health, now time.Time, f *findings) {
	ready := s.ready
	if left := h.silentIn(m.options, now); left > 0 {
		f.again = min(f.again, max(left, m.options.NodeMonitorPeriod/atMostInAPeriod))
	} else {
		ready = corev1.ConditionUnknown
		// Not at each look: a run that has failed is tried again with pauses, which this
		// cuts short.
		if !s.unknown && now.Sub(h.attended) >= m.options.NodeMonitorPeriod {
			h.attended = now
			f.attention = append(f.attention, s.name)
		}
	}
	z := m.zones[s.zone]
	if z == nil {
		z = &zone{limit: bucket{rate: m.options.NodeEvictionRate, tokens: 1, at: now}}
		m.zones[s.zone] = z
	}
	z.members++
	if !s.excluded {
		switch {
		case ready == corev1.ConditionTrue:
			z.ready++
		case s.ready == corev1.ConditionTrue && !h.confirmed:
			z.presumed++
			fallthrough
		default:
			z.notReady++
		}
	}
	// A node without the condition is in its start-up time.
	down := ready == corev1.ConditionFalse || ready == corev1.ConditionUnknown
	switch {
	case !down:
		h.down, h.granted = time.Time{}, false
	case h.down.IsZero():
		h.down = now
	}
	if down && s.noExecute {
		h.granted = false
	}
	if down && !s.noExecute && !h.granted {
		z.waiting = append(z.waiting, candidate{s.name, h})
	}
}

// judgeZones computes the states of the zones, and from them their rates.
func (m *monitor) judgeZones(now time.Time, f *findings) {
	down, counted, presumed := 0, 0, 0
	for name, z := range m.zones {
		f.zones = append(f.zones, census{name, z.ready + z.notReady, z.notReady})
		if z.members == 0 {
			delete(m.zones, name)
			continue
		}
		z.state = stateOf(z.ready, z.notReady, m.options.UnhealthyZoneThreshold)
		z.limit.set(m.options.rate(z.state, z.ready+z.notReady), now)
		if z.ready+z.notReady > 0 {
			counted++
		}
		presumed += z.presumed
		if z.state == zoneDown {
			down++
		}
	}
	// Nodes that only seem silent are enough to set no taint, and not to lift any.
	m.seemsDown = counted > 0 && down == counted
	f.allDown = m.seemsDown && presumed == 0
	f.changed = f.allDown != m.allDown
	m.allDown = f.allDown
}

// grant lets as many nodes have a NoExecute taint as the rates of their zones
// allow, those first that have been down longest.
func (m *monitor) grant(f *findings) {
	if m.seemsDown {
		for _, h := range m.nodes {
			h.granted = false
		}
		return
	}
	for _, z := range m.zones {
		slices.SortFunc(z.waiting, func(a, b candidate) int {
			return cmp.Or(a.health.down.Compare(b.health.down), cmp.Compare(a.name, b.name))
		})
		for len(z.waiting) > 0 && z.limit.take() {
			z.waiting[0].health.granted = true
			f.attention = append(f.attention, z.waiting[0].name)
			z.waiting = z.waiting[1:]
		}
		if len(z.waiting) > 0 {
			f.again = min(f.again, z.limit.wait())
		}
	}
}

// on returns the verdict on a node, with what is seen of it now: a heartbeat may have
// come since the last check.
func (m *monitor) on(s sighting, now time.Time) verdict {
	m.mu.Lock()
	defer m.mu.Unlock()
	v := verdict{noExecute: m.noExecute(s.name)}
	if h := m.nodes[s.name]; h != nil && h.uid == s.uid {
		h.look(s, now)
		v.silent = h.silentIn(m.options, now) <= 0
	}
	return v
}

// confirm notes that a node is silent by what the server says, and not only by the cache.
func (m *monitor) confirm(name string, uid types.UID) {
	m.mu.Lock()
	defer m.mu.Unlock()
	if h := m.nodes[name]; h != nil && h.uid == uid {
		h.confirmed = true
	}
}

// evictions returns the state of a zone, and how many of its nodes a second get a NoExecute taint. While no node of
// the cluster is ready, the zone is down and the rate 0.
func (m *monitor) evictions(of string) (state zoneState, rate float64, known bool) {
	m.mu.Lock()
	defer m.mu.Unlock()
	z := m.zones[of]
	switch {
	case m.seemsDown:
		return zoneDown, 0, true
	case z == nil:
		return zoneNormal, 0, false
	}
	return z.state, z.limit.rate, true
}

// mode returns what may be done about the NoExecute taints of a node.
func (m *monitor) mode(name string) noExecute {
	m.mu.Lock()
	defer m.mu.Unlock()
	return m.noExecute(name)
}

// noExecute is called with mu held.
func (m *monitor) noExecute(name string) noExecute {
	if m.allDown {
		return liftNoExecute
	}
	if h := m.nodes[name]; h != nil && h.granted {
		return setNoExecute
	}
	return holdNoExecute
}
