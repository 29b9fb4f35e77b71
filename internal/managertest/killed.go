// Copyright The Setpoint Authors.
// SPDX-License-Identifier: Apache-2.0

package managertest

import (
	"errors"
	"net/http"
	"sync"
	"testing"
	"testing/synctest"

	"k8s.io/client-go/rest"
)

// Scene is work for a controller, on a server in memory.
type Scene struct {
	Config *rest.Config
	Make   Make
	Await  func()             // lets the controller do its work
	Check  func(t *testing.T) // looks at the end
}

// KilledAfterEachWrite plays a scene once for each of the writes that it takes, in bubbles of their
// own. In the nth, the process is killed when the server has carried out its nth write, before it
// hears the answer, and another process ends the work. In the last one no process is killed. Each time the
// scene ends well, and takes as many writes.
func KilledAfterEachWrite(t *testing.T, scene func(t *testing.T) Scene) {
	t.Helper()
	var writes []int // of each scene
	for n, more := 1, true; more; n++ {
		synctest.Test(t, func(t *testing.T) {
			s := scene(t)
			last := &lastWords{left: n}
			first := Run(t, last.on(s.Config), s.Make)
			s.Await()
			first.Kill()
			rest := &lastWords{left: -1}
			Run(t, rest.on(s.Config), s.Make)
			s.Await()
			s.Check(t)
			writes = append(writes, last.writes+rest.writes)
			more = last.left <= 0
			if more && t.Failed() {
				t.Logf("the process was killed after write %d", n)
			}
		})
	}
	for n, have := range writes {
		if want := writes[len(writes)-1]; have != want {
			t.Errorf("a process that was killed after write %d and the next one took %d writes, want %d", n+1, have, want)
		}
	}
	if len(writes) < 2 {
		t.Error("the scene took no write")
	}
}

// lastWords is the way of a process to the server, which is cut after its last write.
type lastWords struct {
	next http.RoundTripper

	mu     sync.Mutex
	left   int // writes until the way is cut; it never is from the start if it is below 0
	cut    bool
	writes int
}

func (l *lastWords) on(config *rest.Config) *rest.Config {
	config = rest.CopyConfig(config)
	config.Wrap(func(next http.RoundTripper) http.RoundTripper {
		l.next = next
		return l
	})
	return config
}

func (l *lastWords) RoundTrip(r *http.Request) (*http.Response, error) {
	l.mu.Lock()
	cut := l.cut
	l.mu.Unlock()
	if cut {
		return nil, errKilled
	}
	response, err := l.next.RoundTrip(r)
	if r.Method == http.MethodGet || isNone.MatchString(r.URL.Path) || err != nil || response.StatusCode >= http.StatusBadRequest {
		return response, err
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	l.writes++
	if l.left--; l.left == 0 {
		l.cut = true
		return nil, errors.Join(errKilled, response.Body.Close())
	}
	return response, nil
}
