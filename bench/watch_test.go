// Copyright The Setpoint Authors.
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"errors"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/setpoint-io/setpoint/object"
	"github.com/setpoint-io/setpoint/watch/event"
)

func TestWatchSaysWhatIsWrongWithItsArguments(t *testing.T) {
	for _, c := range []struct {
		args []string
		want string
	}{
		{[]string{"--pods", "0"}, "--pods 0"},
		{[]string{"--rate", "-1"}, "--rate -1"},
		{[]string{"--seconds", "0"}, "--seconds 0"},
		{[]string{"--turns", "0"}, "--turns 0"},
		{[]string{"--clients", "0"}, "--clients 0"},
	} {
		var out strings.Builder
		err := run(t.Context(), append([]string{"watch"}, c.args...), &out)
		if err == nil || !strings.Contains(err.Error(), c.want) {
			t.Errorf("%v: error %v, want one with %q", c.args, err, c.want)
		}
	}
}

// A server in this process stands for a control plane.
func TestWatchReplays(t *testing.T) {
	server := os.Getenv("SETPOINT_CONTROLPLANE_BIN")
	if server == "" || testing.Short() {
		t.Skip("SETPOINT_CONTROLPLANE_BIN is not set, or -short; \"make test\" runs it")
	}
	bin := filepath.Dir(server)
	if _, err := os.Stat(filepath.Join(bin, "setpoint-watch")); err != nil { //nolint:gosec // G703: the developer names it
		t.Skip("it is not built: ", err)
	}
	var out strings.Builder
	if err := run(t.Context(), []string{"watch", "--bin", bin, "--replay", "--pods", "50", "--rate", "50", "--seconds", "2"}, &out); err != nil {
		t.Fatalf("%v, after\n%s", err, out.String())
	}
	for _, round := range []string{aloneRound, cursorRound} {
		if _, text, found := strings.Cut(out.String(), "\n"+round+"-changes-lost "); !found || !strings.Contains(text, "setpoint=0.00 peer=0.00 ") {
			t.Errorf("changes were lost, in\n%s", out.String())
		}
	}
}

// As the other cases it is run small, where there is a control plane to run it on.
func TestWatchMeasuresBothSides(t *testing.T) {
	server := os.Getenv("SETPOINT_CONTROLPLANE_BIN")
	if server == "" || testing.Short() {
		t.Skip("SETPOINT_CONTROLPLANE_BIN names no control plane, or -short; \"make test\" runs it")
	}
	bin := filepath.Dir(server)
	if _, err := os.Stat(filepath.Join(bin, "setpoint-watch")); err != nil { //nolint:gosec // G703: the developer names it
		t.Skip("it is not built: ", err)
	}
	var out strings.Builder
	args := []string{"watch", "--bin", bin, "--pods", "50", "--rate", "50", "--seconds", "2", "--together"}
	if err := run(t.Context(), args, &out); err != nil {
		t.Fatalf("%v, after\n%s", err, out.String())
	}
	for _, line := range watchLines(true) {
		_, text, found := strings.Cut(out.String(), "\nwatch-"+line.name+" ")
		text, _, _ = strings.Cut(text, "\n")
		if !found || strings.Contains(text, "peer=none") {
			t.Errorf("%s: %q is no measure of both sides, in\n%s", line.name, text, out.String())
		}
		if line.reading == "lost" && !strings.Contains(text, "setpoint=0.00 peer=0.00 ") {
			t.Errorf("changes were lost: %s, in\n%s", text, out.String())
		}
	}
}

func TestLinesOfBothSidesAreRead(t *testing.T) {
	updated, err := event.Encode(&event.Event{
		ID: "1", Verb: event.Updated, Kind: event.Kind{Version: "v1", Kind: "Pod", Resource: "pods", Namespaced: true},
		Key: object.Key{Namespace: "a", Name: "b"},
		Fields: []event.Field{
			{Path: "metadata.annotations[" + stampAnnotation + "]", Op: event.Replace, From: "1", To: "2", Class: event.Metadata},
			{Path: "spec.containers[name=app].image", Op: event.Replace, From: "x", To: "y", Class: event.Content},
		},
	}, false)
	if err != nil {
		t.Fatal(err)
	}
	for _, c := range []struct {
		name  string
		parse func([]byte) (told, error)
		line  string
		want  told
		wrong bool
	}{
		{name: "setpoint, updated", parse: parseSetpoint, line: string(updated), want: told{event.Updated, "a/b", "2"}},
		{name: "setpoint, deleted", parse: parseSetpoint,
			line: `{"schema":"setpoint.io/watch/v1","verb":"deleted","namespace":"a","name":"b"}`, want: told{event.Deleted, "a/b", ""}},
		{name: "setpoint, another schema", parse: parseSetpoint, line: `{"schema":"v2","verb":"deleted"}`, wrong: true},
		{name: "setpoint, no JSON", parse: parseSetpoint, line: "warning", wrong: true},
		{name: "kubewatch, updated", parse: parseKubewatch,
			line: `{"kind":"Pod","namespace":"a","name":"b","reason":"Updated","written":"2"}`, want: told{event.Updated, "a/b", "2"}},
		{name: "kubewatch, created", parse: parseKubewatch,
			line: `{"kind":"Pod","namespace":"a","name":"b","reason":"Created","written":"2"}`, want: told{event.Created, "a/b", "2"}},
		{name: "kubewatch, nothing", parse: parseKubewatch, line: `{}`, wrong: true},
		{name: "kubewatch, no JSON", parse: parseKubewatch, line: "warning", wrong: true},
	} {
		t.Run(c.name, func(t *testing.T) {
			got, err := c.parse([]byte(c.line))
			if got != c.want || (err != nil) != c.wrong {
				t.Errorf("%+v, error %v; want %+v, an error: %v", got, err, c.want, c.wrong)
			}
		})
	}
}

func TestLedgerTellsWhatWasLostTwiceAndOutOfOrder(t *testing.T) {
	began := time.Unix(1_700_000_000, 0)
	at := func(ms int) time.Time { return began.Add(time.Duration(ms) * time.Millisecond) }
	l := newLedger("good", "bad")
	writes := []told{
		{event.Created, "a/new", "1"}, {event.Updated, "a/b", "2"}, {event.Updated, "a/b", "3"},
		{event.Deleted, "a/b", "4"}, {event.Updated, "a/refused", "5"},
	}
	for i, w := range writes {
		l.send(w, at(i))
		l.answer(w, w.key != "a/refused", at(90+i))
	}
	gone := told{event.Deleted, "a/b", "3"} // with the stamp that it had last
	for _, w := range []told{writes[0], writes[1], writes[2], writes[2] /* marked */, gone} {
		l.tell("good", w, at(100))
	}
	// The second before the first, the first twice; neither created nor marked nor gone.
	for _, w := range []told{writes[2], writes[1], {event.Updated, "a/stranger", "9"}} {
		l.tell("bad", w, at(50))
	}
	if accepted, failed := l.accepted(); accepted != 5 || failed != 1 {
		t.Errorf("%d changes accepted and %d failed, want 5, as a deletion is two, and 1", accepted, failed)
	}
	if lags := l.lags("good"); !slices.Equal(lags, []float64{100, 99, 98, 97, 97}) {
		t.Errorf("lags are %v", lags)
	}
	for side, want := range map[string][]float64{"good": {7, 7, 8, 9, 10}, "bad": {0, 0}} {
		behind := l.behind(side)
		if slices.Sort(behind); !slices.Equal(behind, want) {
			t.Errorf("%s is behind the answers by %v, want %v", side, behind, want)
		}
	}
	for side, want := range map[string]string{
		"good": "5 changes reported, 0 lost, 0 reported twice, 0 after a later one of the same Pod, 0 that were never written",
		"bad":  "2 changes reported, 3 lost, 0 reported twice, 1 after a later one of the same Pod, 1 that were never written; lost were 1 created, 1 deleted, 1 marked",
	} {
		if got := l.report(side); got != want {
			t.Errorf("%s: %q, want %q", side, got, want)
		}
	}
	l.tell("good", writes[0], at(200))
	if got := l.report("good"); !strings.Contains(got, ", 1 reported twice,") {
		t.Errorf("%q, want one reported twice", got)
	}
}

func TestWatcherThatTellsOfNonsenseIsNotWell(t *testing.T) {
	w := &watcher{process: &process{ended: make(chan struct{})}, name: "it", ready: make(chan struct{})}
	l := newLedger("it")
	w.ledger.Store(l)
	w.follow(strings.NewReader(`{"namespace":"a","name":"b","reason":"Updated","written":"`+readyStamp+`1"}
{"namespace":"a","name":"b","reason":"Updated","written":"7"}
half a li`), parseKubewatch)
	select {
	case <-w.ready:
	default:
		t.Error("its first line does not make it ready")
	}
	if err := w.well(); err != nil || w.lines.Load() != 2 || l.sides["it"].unasked != 1 {
		t.Errorf("error %v after %d lines, %+v; want none after two, one of which is told of", err, w.lines.Load(), l.sides["it"])
	}
	w.follow(strings.NewReader("warning: all is lost\n"), parseKubewatch)
	if err := w.well(); err == nil || !strings.Contains(err.Error(), "all is lost") {
		t.Errorf("error %v, want one with the line", err)
	}
}

func TestFlockGivesAPodToOneAtATime(t *testing.T) {
	f := &flock{next: 2}
	dice := diceFor("test", 0).Rand
	if _, found := f.take(dice); found {
		t.Error("an empty flock gives a Pod")
	}
	f.put(0)
	f.put(1)
	first, _ := f.take(dice)
	second, _ := f.take(dice)
	if _, found := f.take(dice); found || first == second {
		t.Errorf("%d and %d were given, and another one: %v", first, second, found)
	}
	if one, two := f.another(), f.another(); one != 2 || two != 3 {
		t.Errorf("the next are %d and %d, want 2 and 3", one, two)
	}
}

func TestWritesThatFailAreCountedAndTheFirstIsKept(t *testing.T) {
	failure := errors.New("no such luck")
	c := &changer{ledger: newLedger("it")}
	c.write(told{verb: event.Updated, key: "a/b"}, func(string) error { return nil })
	c.write(told{verb: event.Deleted, key: "a/b"}, func(string) error { return failure })
	c.write(told{verb: event.Created, key: "a/c"}, func(string) error { return errors.New("another") })
	if accepted, failed := c.ledger.accepted(); accepted != 1 || failed != 3 || len(c.answers) != 3 || !errors.Is(c.failure, failure) {
		t.Errorf("%d accepted, %d failed, %d answers, %v; want 1, 3, 3 and the first failure", accepted, failed, len(c.answers), c.failure)
	}
}

func TestPodsArePlannedAsTheyAreCreated(t *testing.T) {
	whole := pod(3)
	p := planned(whole)
	if p.UID != "" || p.ResourceVersion != "" || len(p.ManagedFields) != 0 || p.Status.Phase != "" || p.Spec.SchedulerName != "none" {
		t.Errorf("%v is not as somebody creates it", p)
	}
	if p.Name == "" || p.Namespace == "" || len(p.Labels) == 0 || len(p.Spec.Containers) != 2 {
		t.Errorf("%v has lost something", p)
	}
}

func TestHeapIsReadFromAProfile(t *testing.T) {
	if mb, err := heapOf("heap profile: 1: 2\n# runtime.MemStats\n# Alloc = 7\n# HeapAlloc = 12500000\n"); err != nil || mb != 12.5 {
		t.Errorf("%v MB, error %v; want 12.5", mb, err)
	}
	if _, err := heapOf("nothing"); err == nil {
		t.Error("nothing has a size")
	}
}
