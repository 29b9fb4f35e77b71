// Copyright The Setpoint Authors.
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"bytes"
	"errors"
	"flag"
	"fmt"
	"maps"
	"math/rand/v2"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/setpoint-io/setpoint/internal/controlplanetest"
	"github.com/setpoint-io/setpoint/watch/journal"
)

var (
	kills = flag.Int("kills", 8, "how often the watch is killed; from 20 on the control plane is too, once")
	seed  = flag.Uint64("seed", uint64(time.Now().UnixNano()), "of the choices of the test that kills")
)

const (
	changesPerSecond = 200
	// patience bounds a test that fails.
	patience = 2 * time.Minute
)

// stage is where a watch is killed.
type stage struct {
	t         *testing.T
	random    *rand.Rand
	cluster   *controlplanetest.Cluster
	namespace string
	dir       string
	ledger    *ledger
	receivers *receivers
	authors   *authors

	run    int
	stops  int          // besides kills, as asked for
	outage [2]time.Time // when the control plane was killed, and was back
}

// routed are the paths of the receivers, with the kinds that they are told of. Where each
// event is a request, which fails a third of the time, a busy machine sends fifty a second.
var routed = map[string][]string{
	"/lots":    {"configmaps", "secrets", "widgets.example.com"},
	"/singles": {"widgets.example.com"},
}

func (s *stage) path(name string) string { return filepath.Join(s.dir, name) }

func (s *stage) configure() {
	s.t.Helper()
	config := fmt.Sprintf(`
apiVersion: setpoint.io/watch/v1
watch:
  kinds: [configmaps, secrets, widgets.example.com]
  namespaces: [%[1]s]
hide: ["configmaps:data.token", "widgets.example.com:spec.token"]
cursor: %[2]s
sinks:
- name: lots
  webhook:
    url: %[3]s/lots
    mode: batch
    objects: true
    signingKey: {env: KEY}
    headers: [{name: %[4]s, from: {env: RUN}}]
  delivery: &often {batch: 100, minWait: 1ms, maxWait: 20ms, timeout: 10s}
- name: singles
  webhook:
    url: %[3]s/singles
    objects: true
    signingKey: {env: KEY}
    headers: [{name: %[4]s, from: {env: RUN}}]
  delivery: *often
routes:
- match: {kinds: [%[5]s]}
  sinks: [singles]
  continue: true
- sinks: [lots]
`, s.namespace, s.path("cursor"), s.receivers.URL, runHeader, strings.Join(routed["/singles"], ", "))
	if err := os.WriteFile(s.path("watch.yaml"), []byte(config), 0o600); err != nil {
		s.t.Fatal(err)
	}
}

// program is a watch that runs.
type program struct {
	*exec.Cmd
	run  int
	done chan struct{} // closed when it has ended, and err is set
	err  error
}

func (s *stage) start(args ...string) *program {
	s.t.Helper()
	exe, err := os.Executable()
	if err != nil {
		s.t.Fatal(err)
	}
	out, err := os.OpenFile(s.path("said"), os.O_CREATE|os.O_APPEND|os.O_WRONLY, 0o600)
	if err != nil {
		s.t.Fatal(err)
	}
	defer out.Close()
	s.run++
	p := &program{run: s.run, done: make(chan struct{})}
	p.Cmd = exec.CommandContext(s.t.Context(), exe, append([]string{"-f", s.path("watch.yaml"), "--kubeconfig", s.cluster.Kubeconfig, "-vv"}, args...)...)
	p.Env = append(os.Environ(), asProgram+"=yes", "KEY="+signingKey, fmt.Sprintf("RUN=%d", p.run))
	p.Stdout, p.Stderr = out, out
	if err := p.Start(); err != nil {
		s.t.Fatal(err)
	}
	go func() {
		defer close(p.done)
		p.err = p.Wait()
	}()
	s.t.Cleanup(func() {
		_ = p.Process.Kill()
		<-p.done
	})
	return p
}

// ended waits until the program has ended by itself, and wants it to be well.
func (s *stage) ended(p *program) {
	s.t.Helper()
	select {
	case <-p.done:
	case <-time.After(patience):
		s.t.Fatalf("run %d does not end:\n%s", p.run, s.said())
	}
	if p.err != nil {
		s.t.Fatalf("run %d: %v:\n%s", p.run, p.err, s.said())
	}
}

// said is the end of what was written to standard error.
func (s *stage) said() string {
	text, err := os.ReadFile(s.path("said"))
	if err != nil {
		return err.Error()
	}
	return string(text[max(0, len(text)-8<<10):])
}

func (s *stage) kill(p *program) {
	s.t.Helper()
	_ = p.Process.Kill()
	<-p.done
	var exit *exec.ExitError
	if status, ok := p.ProcessState.Sys().(syscall.WaitStatus); !ok || !errors.As(p.err, &exit) || status.Signal() != syscall.SIGKILL {
		s.t.Fatalf("run %d ended before it was killed: %v:\n%s", p.run, p.err, s.said())
	}
	s.findNoCanary("cursor") // events wait in it
}

// stop ends the program as somebody does who wants it to end well.
func (s *stage) stop(p *program) {
	s.t.Helper()
	if err := p.Process.Signal(syscall.SIGTERM); err != nil {
		s.t.Fatal(err)
	}
	s.ended(p)
}

// findNoCanary looks through a file as it is on the disk.
func (s *stage) findNoCanary(name string) {
	s.t.Helper()
	text, err := os.ReadFile(s.path(name))
	if err != nil {
		s.t.Error(err)
	}
	for _, c := range canaries {
		if at := bytes.Index(text, []byte(c)); at >= 0 {
			s.t.Errorf("%s has a hidden value: %q", name, text[max(0, at-200):at+len(c)])
		}
	}
}

// moment waits for a random time. It is what the test does, and nothing is concluded of it.
func (s *stage) moment(least, most time.Duration) time.Duration {
	d := least + time.Duration(s.random.Int64N(int64(most-least)))
	select {
	case <-time.After(d):
	case <-s.t.Context().Done():
	}
	return d
}

// killOnce runs the watch and kills it at a moment that may be any.
func (s *stage) killOnce() string {
	s.t.Helper()
	before := ""
	if s.random.IntN(3) == 0 {
		before = fmt.Sprintf("after %v without a watch ", s.moment(time.Millisecond, time.Second))
	}
	news := s.receivers.arrivedFirst()
	p := s.start()
	var since string
	switch s.random.IntN(3) {
	case 0:
		since = "start"
	case 1:
		since = "its first delivery"
		s.await(p, func(latest, _ int) bool { return latest >= p.run })
	default:
		since = "an event that had not been there"
		s.await(p, func(latest, now int) bool { return latest >= p.run && now > news })
	}
	d := s.moment(time.Millisecond, 800*time.Millisecond)
	if since != "start" && s.random.IntN(4) == 0 { // it would not know yet how to end well
		s.stops++
		s.stop(p)
		p = s.start()
		s.await(p, func(latest, _ int) bool { return latest >= p.run })
		before += "one was stopped, and the next "
	}
	s.kill(p)
	return fmt.Sprintf("%skilled %v after %s", before, d, since)
}

func (s *stage) await(p *program, holds func(latest, news int) bool) {
	s.t.Helper()
	if !s.receivers.until(patience, holds) {
		s.t.Fatalf("nothing arrives of run %d:\n%s", p.run, s.said())
	}
}

// breakDown kills the control plane under a watch, and the watch too before it is back.
func (s *stage) breakDown() {
	s.t.Helper()
	news := s.receivers.arrivedFirst()
	p := s.start()
	s.await(p, func(latest, now int) bool { return latest >= p.run && now > news })
	s.moment(time.Millisecond, 500*time.Millisecond)
	s.outage[0] = time.Now()
	s.cluster.Kill(s.t)
	s.moment(time.Millisecond, time.Second)
	s.kill(p)
	p = s.start()
	if err := s.cluster.Restart(s.t.Context()); err != nil {
		s.t.Fatal(err)
	}
	s.outage[1] = time.Now()
	news = s.receivers.arrivedFirst()
	s.await(p, func(latest, now int) bool { return latest >= p.run && now > news })
	s.moment(time.Millisecond, 500*time.Millisecond)
	s.kill(p)
}

// forgiven says that a change may be told with a later one: a server that is started
// anew has no steps of what was before.
func (s *stage) forgiven(at time.Time) bool {
	const around = 10 * time.Second
	return !s.outage[0].IsZero() && at.After(s.outage[0].Add(-around)) && at.Before(s.outage[1].Add(around))
}

// stacks ends a program that stands still, and returns where its goroutines were.
func (s *stage) stacks(p *program) string {
	text, err := os.ReadFile(s.path("said"))
	if err != nil {
		return err.Error()
	}
	before := len(text)
	_ = p.Process.Signal(syscall.SIGQUIT)
	<-p.done
	if text, err = os.ReadFile(s.path("said")); err != nil {
		return err.Error()
	}
	return string(text[max(0, before-8<<10):])
}

// arrived waits until the receivers have been told of everything.
func (s *stage) arrived(p *program) {
	s.t.Helper()
	for deadline := time.Now().Add(patience + time.Duration(*kills)*10*time.Second); ; {
		news := s.receivers.arrivedFirst() // before it is judged: what comes meanwhile is news
		missed := 0
		for _, path := range slices.Sorted(maps.Keys(routed)) {
			missed += s.ledger.judge(path, routed[path], s.forgiven).missed
		}
		if missed == 0 {
			return
		}
		if time.Now().After(deadline) || !s.receivers.until(30*time.Second, func(_, now int) bool { return now > news }) {
			s.t.Fatalf("%d changes have not arrived, and nothing new comes of run %d:\n%s", missed, p.run, s.stacks(p))
		}
	}
}

// judged compares and prints.
func (s *stage) judged() {
	s.t.Helper()
	for _, path := range slices.Sorted(maps.Keys(routed)) {
		v := s.ledger.judge(path, routed[path], s.forgiven)
		s.t.Logf("%s: %d changes made, %d told (%d deletions), %d merged (%d of them around the outage), %d missed; %d events arrived, %d of them duplicates; %d out of order, %d reworded, %d unknown",
			path, v.made, v.told, v.deletions, v.merged, v.forgiven, v.missed, v.arrivals, v.duplicates, v.disorder, v.reworded, v.unknown)
		if v.missed+v.disorder+v.unknown > 0 || v.merged > v.forgiven || s.outage[0].IsZero() && v.reworded > 0 || v.deletions == 0 {
			s.t.Errorf("%s:\n%s", path, strings.Join(v.lines, "\n"))
		}
	}
	text, wrong := s.receivers.figures()
	s.t.Log(text)
	for _, w := range wrong {
		s.t.Error(w)
	}
}

// sound opens the journal and compares it with what is there.
func (s *stage) sound() {
	s.t.Helper()
	j, damage, err := journal.Open(s.path("cursor"), journal.Options{})
	if err != nil || damage != nil {
		s.t.Fatal(damage, err)
	}
	defer func() {
		if err := j.Close(); err != nil {
			s.t.Error(err)
		}
	}()
	if len(j.Sinks()) != len(routed) || len(j.Selections()) != 3 {
		s.t.Errorf("the journal has the sinks %q and the selections %q", j.Sinks(), j.Selections())
	}
	for _, name := range j.Sinks() {
		if n, _, _, err := j.Waiting(name); n != 0 || err != nil {
			s.t.Errorf("%d events wait for %s (%v), want none", n, name, err)
		}
	}
	there := map[thing]state{}
	for t, all := range s.ledger.made {
		if last := all[len(all)-1]; last.version != "" {
			there[t] = last.state()
		}
	}
	for _, name := range j.Selections() {
		kind, _, _ := strings.Cut(name, "/")
		objects, failed := j.Objects(name)
		for key, seen := range objects {
			t := thing{kind, key}
			if there[t] != (state{seen.UID, seen.Version}) && strings.HasPrefix(key.Name, "writer-") {
				s.t.Errorf("%s: the journal has %v, and the server %+v", t, seen, there[t])
			}
			delete(there, t)
		}
		if err := failed(); err != nil {
			s.t.Error(err)
		}
	}
	for t := range there {
		s.t.Errorf("%s is not in the journal", t)
	}
}

func TestNothingIsLostWhenTheWatchIsKilledAtRandomMoments(t *testing.T) {
	began := time.Now()
	options := controlplanetest.Options{Restartable: *kills >= 20}
	s := &stage{t: t, cluster: controlplanetest.Start(t, options), random: rand.New(rand.NewPCG(*seed, 0)), dir: t.TempDir(), ledger: newLedger()}
	t.Logf("the same choices again: -kills %d -seed %d", *kills, *seed)
	defer func() {
		if t.Failed() {
			t.Log(s.said())
		}
	}()
	s.namespace = s.cluster.Namespace(t)
	s.cluster.Define(s.t, widgets)
	s.receivers = newReceivers(t, s.ledger, *seed)
	s.configure()
	s.ended(s.start("--once")) // from here on nothing is to be missed

	t.Logf("%.1f s until there is a cursor", time.Since(began).Seconds())
	began = time.Now()
	s.authors = writing(t, s.cluster.Client, s.ledger, s.namespace, *seed, changesPerSecond)
	for n := range *kills {
		if options.Restartable && n == *kills/2 {
			s.breakDown()
		}
		t.Logf("%d: %s", n+1, s.killOnce())
	}
	s.authors.end()
	t.Logf("%d changes in %.1f s, %.0f/s; %d without an answer", s.authors.wrote.Load(), time.Since(began).Seconds(),
		float64(s.authors.wrote.Load())/time.Since(began).Seconds(), s.authors.unknown.Load())

	last := s.start()
	s.arrived(last)
	s.receivers.heal()
	s.stop(last)
	s.ended(s.start("--once")) // status 0: there is nothing to be told
	t.Logf("everything has arrived after %.1f s", time.Since(began).Seconds())
	s.judged()
	s.sound()
	s.findNoCanary("cursor")
	s.findNoCanary("said")
}
