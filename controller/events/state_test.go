// Copyright The Setpoint Authors.
// SPDX-License-Identifier: Apache-2.0

package events

import (
	"fmt"
	"strings"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/client-go/rest"

	"github.com/setpoint-io/setpoint/client"
)

func testEvent(name, note string, at time.Time) event {
	return event{
		about: corev1.ObjectReference{Kind: "ReplicaSet", Namespace: "ns", Name: name, UID: "u"},
		kind:  corev1.EventTypeNormal, reason: "SuccessfulCreate", action: "Create", note: note, at: at,
	}
}

func TestSameEventIsCountedAndItsCountWrittenSeldom(t *testing.T) {
	var s recorderState
	now := time.Unix(1000, 0)
	if d := s.decide(testEvent("rs", "made", now)); d.drop || d.series != nil || d.note != "made" {
		t.Fatalf("the first: %+v", d)
	}
	written := 0
	last := int32(0)
	for i := range 1000 {
		if d := s.decide(testEvent("rs", "made", now.Add(time.Duration(i)*time.Millisecond/10))); !d.drop {
			written++
			last = d.series.Count
		}
	}
	if written > 10 || last != 512 {
		t.Errorf("%d counts were written, the last of %d", written, last)
	}
}

func TestManySimilarEventsBecomeOne(t *testing.T) {
	var s recorderState
	now := time.Unix(1000, 0)
	single, combined := 0, 0
	for i := range 100 {
		d := s.decide(testEvent("rs", fmt.Sprintf("Created pod: web-%d", i), now))
		switch {
		case d.drop:
		case strings.HasPrefix(d.note, "(combined from similar events): "):
			combined++
		default:
			single++
		}
	}
	if single != similarMost || combined == 0 || single+combined > objectBurst {
		t.Errorf("%d single and %d combined events were written", single, combined)
	}
}

func TestAnObjectGetsABurstOfEventsAndThenFew(t *testing.T) {
	var s recorderState
	now := time.Unix(1000, 0)
	count := func(at time.Time) (n int) {
		for i := range 200 {
			e := testEvent("rs", "x", at)
			e.reason = fmt.Sprint("Reason", i, at.Unix())
			if !s.decide(e).drop {
				n++
			}
		}
		return n
	}
	if n := count(now); n != objectBurst {
		t.Errorf("%d at once, want %d", n, objectBurst)
	}
	if n := count(now.Add(objectRefill)); n != 1 {
		t.Errorf("%d more after %s, want 1", n, objectRefill)
	}
}

func TestEventNamesFitAndDiffer(t *testing.T) {
	at := time.Unix(1000, 0)
	long := testEvent(strings.Repeat("a", nameMost), "x", at)
	a, b := eventName(long, "k", "x"), eventName(long, "k", "y")
	if len(a) != nameMost || a == b {
		t.Errorf("%d bytes, equal %v", len(a), a == b)
	}
}

func TestRecordingNeverBlocks(t *testing.T) {
	c, err := client.New(&rest.Config{})
	if err != nil {
		t.Fatal(err)
	}
	r := &Recorder{client: c, queue: make(chan *event, 1)}
	for range 3 {
		r.Normal(&corev1.Pod{}, "Reason", "Action", "note")
	}
	if r.Dropped() != 2 {
		t.Errorf("%d dropped, want 2", r.Dropped())
	}
}
