// Copyright The Setpoint Authors.
// SPDX-License-Identifier: Apache-2.0

package events

import (
	"fmt"
	"hash/fnv"
	"time"

	eventsv1 "k8s.io/api/events/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// recorderState decides what becomes of an event: written, counted in one that was
// written before, or dropped. It is used by one goroutine, reads no clock and sends no
// requests.
type recorderState struct {
	similar map[string]*similarity
	objects map[string]*allowance
}

// decision is what to do with an event.
type decision struct {
	drop   bool
	name   string                // of the Event object
	note   string                // as it is to be written
	series *eventsv1.EventSeries // not nil: count in the Event called name
}

// similarity is what is known of events with one object, type, reason and action.
type similarity struct {
	began time.Time
	notes map[string]*series // by note; "" is all that are beyond the first few
}

type series struct {
	name    string
	count   int32
	written time.Time
}

// allowance is a token bucket for the events about one object.
type allowance struct {
	tokens float64
	at     time.Time
}

func (s *recorderState) decide(e event) decision {
	if s.similar == nil || len(s.similar) > recorderObjects || len(s.objects) > recorderObjects {
		// Forgetting costs a repeated event, remembering everything costs memory.
		s.similar, s.objects = map[string]*similarity{}, map[string]*allowance{}
	}
	about := e.about.Kind + "/" + e.about.Namespace + "/" + e.about.Name + "/" + string(e.about.UID)
	key := about + "/" + e.kind + "/" + e.reason + "/" + e.action
	like := s.similar[key]
	if like == nil || e.at.Sub(like.began) > similarWindow {
		like = &similarity{began: e.at, notes: map[string]*series{}}
		s.similar[key] = like
	}
	group, note := e.note, e.note
	if like.notes[group] == nil && len(like.notes) >= similarMost {
		group, note = "", cutNote("(combined from similar events): "+e.note)
	}
	known := like.notes[group]
	if known == nil {
		known = &series{name: eventName(e, key, group), count: 1, written: e.at}
		like.notes[group] = known
		if !s.allow(about, e.at) {
			delete(like.notes, group)
			return decision{drop: true}
		}
		return decision{name: known.name, note: note}
	}
	known.count++
	// A count is worth a write when it has doubled or some time has passed.
	if known.count&(known.count-1) != 0 && e.at.Sub(known.written) < seriesEvery || !s.allow(about, e.at) {
		return decision{drop: true}
	}
	known.written = e.at
	return decision{name: known.name, note: note, series: &eventsv1.EventSeries{
		Count: known.count, LastObservedTime: metav1.NewMicroTime(e.at),
	}}
}

func (s *recorderState) allow(about string, at time.Time) bool {
	a := s.objects[about]
	if a == nil {
		a = &allowance{tokens: objectBurst, at: at}
		s.objects[about] = a
	}
	a.tokens = min(objectBurst, a.tokens+at.Sub(a.at).Seconds()/objectRefill.Seconds())
	a.at = at
	if a.tokens < 1 {
		return false
	}
	a.tokens--
	return true
}

// nameMost is the longest name of an object. Source: k8s.io/apimachinery
// validation, DNS1123SubdomainMaxLength.
const nameMost = 253

// eventName is unique for what the event says and when it was first said.
func eventName(e event, key, note string) string {
	h := fnv.New64a()
	_, _ = fmt.Fprintf(h, "%s\x00%s\x00%d", key, note, e.at.UnixNano())
	suffix := fmt.Sprintf(".%016x", h.Sum64())
	return e.about.Name[:min(len(e.about.Name), nameMost-len(suffix))] + suffix
}
