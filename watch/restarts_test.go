// Copyright The Setpoint Authors.
// SPDX-License-Identifier: Apache-2.0

package watch

import (
	"errors"
	"fmt"
	"io"
	"math/rand/v2"
	"net/http"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"k8s.io/client-go/rest"

	"github.com/setpoint-io/setpoint/internal/controlplanetest"
	"github.com/setpoint-io/setpoint/object"
	"github.com/setpoint-io/setpoint/watch/event"
)

// moody lets some watches come to nothing, those that replay and those of the informer: as
// a server does that has forgotten or is in trouble, or a connection that breaks.
type moody struct {
	next   http.RoundTripper
	mu     *sync.Mutex
	random *rand.Rand
}

func (m moody) mood(n int) int {
	m.mu.Lock()
	defer m.mu.Unlock()
	return m.random.IntN(n)
}

func (m moody) RoundTrip(r *http.Request) (*http.Response, error) {
	q := r.URL.Query()
	if q.Get("watch") == "" || q.Get("sendInitialEvents") != "" || !strings.HasSuffix(r.URL.Path, "/configmaps") {
		return m.next.RoundTrip(r)
	}
	switch m.mood(5) {
	case 0:
		body := `{"kind":"Status","apiVersion":"v1","status":"Failure","reason":"Expired","code":410,"message":"too old resource version"}`
		return &http.Response{StatusCode: http.StatusGone, Header: http.Header{"Content-Type": {"application/json"}}, Body: io.NopCloser(strings.NewReader(body)), Request: r}, nil
	case 1:
		return nil, errors.New("connection reset by peer")
	case 2:
		answer, err := m.next.RoundTrip(r)
		if err == nil {
			answer.Body = &breaking{answer.Body, 200 + m.mood(4000)}
		}
		return answer, err
	}
	return m.next.RoundTrip(r)
}

// breaking is a body of which so many bytes arrive.
type breaking struct {
	io.ReadCloser
	left int
}

func (b *breaking) Read(p []byte) (int, error) {
	if b.left <= 0 {
		return 0, io.ErrUnexpectedEOF
	}
	n, err := b.ReadCloser.Read(p[:min(len(p), b.left)])
	b.left -= n
	return n, err
}

// Whatever happens to the watch and its connections, the last that is told of an object is
// what it is, what is told of it is in order, and of each life its end is told.
func TestAnyRestartTellsWhatBecameOfEachObject(t *testing.T) {
	seed := rand.Uint64()
	t.Logf("seed %d", seed)
	random := rand.New(rand.NewPCG(seed, 0))
	s := newScene(t)
	n := open(t, filepath.Join(t.TempDir(), "cursor"))
	config := rest.CopyConfig(s.Config)
	mood := moody{mu: new(sync.Mutex), random: rand.New(rand.NewPCG(seed, 1))}
	config.Wrap(func(next http.RoundTripper) http.RoundTripper {
		m := mood
		m.next = next
		return m
	})
	options := Options{Kinds: []string{"configmaps"}, Namespaces: []string{s.namespace}, Journal: n.Journal, Route: toBook}
	there := map[string]int{}
	change := func(n int) {
		for range n {
			name := string(rune('a' + random.IntN(6)))
			switch what := random.IntN(4); {
			case there[name] == 0:
				s.create(name)
				there[name] = 1
			case what == 0:
				s.delete(name)
				there[name] = 0
			default:
				there[name]++
				s.set(name, fmt.Sprint(there[name]))
			}
		}
	}
	for round := range 12 {
		options.Window = time.Duration(random.IntN(2)*200) * time.Millisecond
		p, w := watching(t, config, options)
		if round == 0 || random.IntN(3) > 0 {
			begun(t, w, 1)
		}
		if round == 0 {
			remembers(t, n, w.all()[0].name)
		}
		change(random.IntN(20))
		if seen := w.Status().Seen; random.IntN(2) == 0 { // otherwise it ends wherever it is
			begun(t, w, 1)
			s.create(fmt.Sprint("mark-", round))
			controlplanetest.Eventually(t, "something more is seen", func() bool { return w.Status().Seen > seen })
		}
		p.Stop()
		change(random.IntN(20))
	}
	_, w := watching(t, s.Config, options)
	begun(t, w, 1)
	current := map[string]string{}
	for key, item := range w.all()[0].informer.All() {
		current[key.Name] = string(item.Meta().Version)
	}
	last := func() map[string]*event.Event {
		n.lines()
		last := map[string]*event.Event{}
		for _, e := range n.all {
			last[e.Key.Name] = e
		}
		return last
	}
	controlplanetest.Eventually(t, "the last that is told of each object is what it is", func() bool {
		all := last()
		for name, e := range all {
			if version, is := current[name]; is != (e.Verb != event.Deleted) || is && version != e.Version {
				return false
			}
		}
		for name := range current {
			if all[name] == nil {
				return false
			}
		}
		return true
	})
	reached, alive, told := map[string]object.Version{}, map[string]string{}, map[string]bool{}
	for _, e := range n.all {
		if name, version := e.Key.Name, object.Version(e.Version); !told[e.ID] {
			if !version.AtLeast(reached[name]) {
				t.Errorf("%s %s is told of at %s after %s", e.Verb, name, version, reached[name])
			}
			if life := alive[name]; life != "" && life != string(e.UID) && e.Verb != event.Replaced {
				t.Errorf("%s %s: another one is told of, and the end of the one before was not", e.Verb, name)
			}
			reached[name], alive[name] = version, string(e.UID)
			if e.Verb == event.Deleted {
				alive[name] = ""
			}
		}
		told[e.ID] = true
	}
	if t.Failed() {
		t.Log(strings.Join(n.lines(), "\n"))
	}
}
