// Copyright The Setpoint Authors.
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"bytes"
	"context"
	"errors"
	"log/slog"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/setpoint-io/setpoint/object"
	"github.com/setpoint-io/setpoint/watch/event"
	"github.com/setpoint-io/setpoint/watch/journal"
	"github.com/setpoint-io/setpoint/watch/sink"
)

// scripted is a sink that answers as it is told to.
type scripted struct {
	results []sink.Result
	sent    [][]*event.Event
}

func (s *scripted) Send(_ context.Context, events []*event.Event) sink.Result {
	s.sent = append(s.sent, events)
	r := s.results[0]
	s.results = s.results[1:]
	return r
}

func (s *scripted) Close() error { return nil }

func events(names ...string) []*event.Event {
	var all []*event.Event
	for _, name := range names {
		all = append(all, &event.Event{ID: name, Verb: event.Created, Kind: event.Kind{Version: "v1", Kind: "Pod", Resource: "pods"}, Key: object.Key{Namespace: "a", Name: name}})
	}
	return all
}

// quiet is a pipeline for a command line, and what it logs.
func quiet(t *testing.T, file string, args ...string) (*pipeline, *bytes.Buffer) {
	t.Helper()
	_, p, err := planned(t, file, args...)
	if err != nil {
		t.Fatal(err)
	}
	var logged bytes.Buffer
	p.log = slog.New(slog.NewTextHandler(&logged, nil))
	t.Cleanup(p.close)
	return p, &logged
}

func TestEventsArePrintedUntilAllAreDone(t *testing.T) {
	p, logged := quiet(t, "")
	s := &scripted{results: []sink.Result{{Done: 2, Refused: []sink.Refusal{{Index: 1, Err: errors.New("too large")}}}, {Done: 1}}}
	p.made = []sink.Sink{s}
	if err := p.print(t.Context(), events("x", "y", "z")); err != nil {
		t.Fatal(err)
	}
	if len(s.sent) != 2 || len(s.sent[1]) != 1 || s.sent[1][0].ID != "z" {
		t.Errorf("sent %v", s.sent)
	}
	if !strings.Contains(logged.String(), "object=a/y") || !strings.Contains(logged.String(), "too large") {
		t.Errorf("what was refused is not said: %s", logged)
	}
}

func TestAnErrorOfPrintingIsReturned(t *testing.T) {
	p, _ := quiet(t, "")
	broken := errors.New("broken")
	p.made = []sink.Sink{&scripted{results: []sink.Result{{Done: 1, Err: broken}, {}}}}
	if err := p.print(t.Context(), events("x", "y")); !errors.Is(err, broken) {
		t.Error(err)
	}
	if err := p.print(t.Context(), events("x")); err == nil {
		t.Error("a sink that does nothing would be asked for ever")
	}
}

const twoSinks = `
sinks:
- name: one
  terminal: {}
- name: two
  terminal: {objects: true, form: json}
routes:
- match: {namespaces: [b]}
  sinks: [one]
- sinks: [two]
`

func TestWithoutACursorEventsWaitInMemoryForTheSinksOfTheirRoutes(t *testing.T) {
	p, logged := quiet(t, twoSinks)
	p.made = []sink.Sink{&scripted{}, &scripted{}}
	if err := p.connect(); err != nil {
		t.Fatal(err)
	}
	if p.options.Tell == nil || p.options.Journal != nil || len(p.runners) != 2 || !p.options.WithObjects {
		t.Errorf("%+v", p.options)
	}
	if !strings.Contains(logged.String(), "there is no cursor") {
		t.Error("nobody is warned")
	}
	if err := p.options.Tell(t.Context(), events("x")); err != nil {
		t.Fatal(err)
	}
	one, _ := p.memory["one"].Waiting()
	two, _ := p.memory["two"].Waiting()
	if one != 0 || two != 1 {
		t.Errorf("%d and %d events wait, want 0 and 1", one, two)
	}
}

func TestWithACursorEventsGoToTheJournal(t *testing.T) {
	p, _ := quiet(t, "", "--cursor", filepath.Join(t.TempDir(), "seen"))
	p.made = []sink.Sink{&scripted{}}
	if err := errors.Join(p.open(), p.connect()); err != nil {
		t.Fatal(err)
	}
	if p.options.Tell != nil || p.options.Journal == nil || len(p.runners) != 1 {
		t.Errorf("%+v", p.options)
	}
	if names, err := p.options.Route(events("x")[0]); err != nil || len(names) != 1 || names[0] != terminalName {
		t.Errorf("%q, %v", names, err)
	}
}

func TestACursorIsForOneWatch(t *testing.T) {
	file := filepath.Join(t.TempDir(), "seen")
	first, _ := quiet(t, "", "--cursor", file)
	if err := first.open(); err != nil {
		t.Fatal(err)
	}
	second, _ := quiet(t, "", "--cursor", file)
	if err := second.open(); !errors.Is(err, journal.ErrLocked) || !strings.Contains(err.Error(), "each watch needs a file of its own") {
		t.Error(err)
	}
}

func TestTheCursorIsLetGoOfBeforeTheLeaseIs(t *testing.T) {
	path := filepath.Join(t.TempDir(), "seen")
	p, _ := quiet(t, twoSinks, "--cursor", path)
	p.made = []sink.Sink{nil, nil} // an error, soon after the cursor was opened
	if err := p.Run(t.Context()); err == nil || p.journal == nil {
		t.Fatalf("%v, journal %v", err, p.journal)
	}
	j, _, err := journal.Open(path, journal.Options{LockWait: -1}) // whoever has the lease next
	if err != nil {
		t.Fatal(err)
	}
	if err := j.Close(); err != nil {
		t.Error(err)
	}
}

func TestADamagedCursorIsSetAsideAndSaidSo(t *testing.T) {
	file := filepath.Join(t.TempDir(), "seen")
	if err := os.WriteFile(file, bytes.Repeat([]byte("no journal"), 10_000), 0o600); err != nil {
		t.Fatal(err)
	}
	p, logged := quiet(t, "", "--cursor", file)
	if err := p.open(); err != nil {
		t.Fatal(err)
	}
	all, err := os.ReadDir(filepath.Dir(file))
	if err != nil || len(all) != 2 {
		t.Fatalf("%v, %v", all, err)
	}
	for _, f := range all {
		if aside := filepath.Join(filepath.Dir(file), f.Name()); aside != file && (!strings.Contains(logged.String(), aside) || !strings.Contains(logged.String(), "level=WARN")) {
			t.Errorf("%s is not named in\n%s", aside, logged)
		}
	}
}

func TestEventsForASinkThatIsGoneAreNamed(t *testing.T) {
	file := filepath.Join(t.TempDir(), "seen")
	p, _ := quiet(t, "", "--cursor", file)
	if err := p.open(); err != nil {
		t.Fatal(err)
	}
	data, err := event.Encode(events("x")[0], false)
	if err != nil {
		t.Fatal(err)
	}
	var batch journal.Batch
	batch.Event("slack", "x", data)
	if _, err := p.journal.Commit(&batch); err != nil {
		t.Fatal(err)
	}
	p.close()
	p, logged := quiet(t, "", "--cursor", file)
	if err := p.open(); err != nil {
		t.Fatal(err)
	}
	if !strings.Contains(logged.String(), "sink=slack events=1") {
		t.Error(logged)
	}
}

func TestCloudEventsSayWhichServerTheyAreOf(t *testing.T) {
	const server = "https://10.0.0.1"
	named := sink.Options{File: &sink.File{Path: "x", Source: "prod"}}
	if got := from(server, named); got.File.Source != "prod" {
		t.Errorf("%q, and the cluster has a name", got.File.Source)
	}
	unnamed := sink.Options{Webhook: &sink.Webhook{}}
	if got := from(server, unnamed); got.Webhook.Source != server || unnamed.Webhook.Source != "" {
		t.Errorf("%q, of %q", got.Webhook.Source, unnamed.Webhook.Source)
	}
}
