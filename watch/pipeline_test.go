// Copyright The Setpoint Authors.
// SPDX-License-Identifier: Apache-2.0

package watch

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
	"github.com/setpoint-io/setpoint/watch/config"
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

// quiet is a pipeline with these sinks, and what it logs.
func quiet(t *testing.T, sinks string, cursor string, made ...sink.Sink) (*Pipeline, *bytes.Buffer) {
	t.Helper()
	c, err := config.Parse([]byte("apiVersion: "+config.Version+"\n"+sinks), "watch.yaml")
	if err != nil {
		t.Fatal(err)
	}
	o := Configured(c)
	var logged bytes.Buffer
	o.Log, o.Cursor = slog.New(slog.NewTextHandler(&logged, nil)), cursor
	p := &Pipeline{o: o, sinks: made}
	t.Cleanup(p.closeJournal)
	return p, &logged
}

const oneSink = "sinks: [{name: terminal, terminal: {}}]"

func TestEventsArePrintedUntilAllAreDone(t *testing.T) {
	s := &scripted{results: []sink.Result{{Done: 2, Refused: []sink.Refusal{{Index: 1, Err: errors.New("too large")}}}, {Done: 1}}}
	p, logged := quiet(t, oneSink, "", s)
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
	broken := errors.New("broken")
	p, _ := quiet(t, oneSink, "", &scripted{results: []sink.Result{{Done: 1, Err: broken}, {}}})
	if err := p.print(t.Context(), events("x", "y")); !errors.Is(err, broken) {
		t.Error(err)
	}
	if err := p.print(t.Context(), events("x")); err == nil {
		t.Error("a sink that does nothing would be asked for ever")
	}
}

func TestOneTerminalPrintsWhatARouteLeadsToIt(t *testing.T) {
	s := &scripted{results: []sink.Result{{Done: 1}}}
	p, logged := quiet(t, oneSink+"\nroutes: [{match: {kinds: [services]}, sinks: []}, {sinks: [terminal]}]", "", s)
	runners, err := p.connect()
	if err != nil || len(runners) != 0 || logged.Len() > 0 {
		t.Fatalf("%d runners, %v: %s", len(runners), err, logged)
	}
	both := events("x", "y")
	both[1].Kind.Resource = "services"
	if err := p.o.Tell(t.Context(), both); err != nil || len(s.sent) != 1 || len(s.sent[0]) != 1 || s.sent[0][0].ID != "x" {
		t.Errorf("sent %v, %v", s.sent, err)
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
	p, logged := quiet(t, twoSinks, "", &scripted{}, &scripted{})
	runners, err := p.connect()
	if err != nil {
		t.Fatal(err)
	}
	if p.o.Tell == nil || p.o.Journal != nil || len(runners) != 2 {
		t.Errorf("%+v", p.o.Options)
	}
	if !strings.Contains(logged.String(), "there is no cursor") {
		t.Error("nobody is warned")
	}
	if err := p.o.Tell(t.Context(), events("x")); err != nil {
		t.Fatal(err)
	}
	one, _ := p.memory["one"].Waiting()
	two, _ := p.memory["two"].Waiting()
	if one != 0 || two != 1 {
		t.Errorf("%d and %d events wait, want 0 and 1", one, two)
	}
}

func TestWithACursorEventsGoToTheJournal(t *testing.T) {
	p, _ := quiet(t, oneSink, filepath.Join(t.TempDir(), "seen"), &scripted{})
	if err := p.Open(); err != nil {
		t.Fatal(err)
	}
	runners, err := p.connect()
	if err != nil {
		t.Fatal(err)
	}
	if p.o.Tell != nil || p.o.Journal == nil || len(runners) != 1 {
		t.Errorf("%+v", p.o.Options)
	}
	if names, err := p.o.Route(events("x")[0]); err != nil || len(names) != 1 || names[0] != "terminal" {
		t.Errorf("%q, %v", names, err)
	}
}

func TestACursorIsForOneWatch(t *testing.T) {
	file := filepath.Join(t.TempDir(), "seen")
	first, _ := quiet(t, oneSink, file)
	if err := first.Open(); err != nil {
		t.Fatal(err)
	}
	second, _ := quiet(t, oneSink, file)
	if err := second.Open(); !errors.Is(err, journal.ErrLocked) || !strings.Contains(err.Error(), "each watch needs a file of its own") {
		t.Error(err)
	}
}

func TestTheCursorIsLetGoOfBeforeTheLeaseIs(t *testing.T) {
	path := filepath.Join(t.TempDir(), "seen")
	p, _ := quiet(t, twoSinks, path, nil, nil) // an error, soon after the cursor was opened
	if err := p.Run(t.Context()); err == nil || p.journal == nil {
		t.Fatalf("%v, journal %v", err, p.journal)
	}
	j, _, err := journal.Open(path, journal.Options{LockWait: -1}) // as the next leader does
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
	p, logged := quiet(t, oneSink, file)
	if err := p.Open(); err != nil {
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
	p, _ := quiet(t, oneSink, file)
	if err := p.Open(); err != nil {
		t.Fatal(err)
	}
	data, err := event.Encode(events("x")[0], false)
	if err != nil {
		t.Fatal(err)
	}
	var batch journal.Batch
	batch.Event("slack", "x", data)
	if err := p.journal.Commit(&batch); err != nil {
		t.Fatal(err)
	}
	p.closeJournal()
	p, logged := quiet(t, oneSink, file)
	if err := p.Open(); err != nil {
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
