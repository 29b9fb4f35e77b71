// Copyright The Setpoint Authors.
// SPDX-License-Identifier: Apache-2.0

package managers

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"net/http"
	"net/http/httptest"
	"slices"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	coordinationv1 "k8s.io/api/coordination/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/setpoint-io/setpoint/client"
	"github.com/setpoint-io/setpoint/explain"
	"github.com/setpoint-io/setpoint/explain/gather"
	"github.com/setpoint-io/setpoint/manager"
	"github.com/setpoint-io/setpoint/object"
	"github.com/setpoint-io/setpoint/runs"
	"github.com/setpoint-io/setpoint/setpointtest/fakeapi"
)

// leases returns a server of Leases, and a client of it.
func leases(t *testing.T) (*fakeapi.Resource, *client.Client) {
	t.Helper()
	all := fakeapi.New().Serve(object.Resource{Group: "coordination.k8s.io", Version: "v1", Plural: "leases", Kind: "Lease", Namespaced: true})
	c, err := client.New(all.Config())
	if err != nil {
		t.Fatal(err)
	}
	return all, c
}

// again lets the next question look for managers.
func (m *Managers) again() {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.at = m.at.Add(-foundLasts)
}

// Without a manager the user reads what is waited for, once.
func TestWithoutAManagerTheUserIsTold(t *testing.T) {
	server, c := leases(t)
	var said []string
	m := New(Options{Client: c, Config: server.Config(), Say: func(text string) { said = append(said, text) }})
	for range 3 {
		m.again()
		if _, err := m.Overviews(t.Context()); err == nil || !strings.Contains(err.Error(), "no manager of Setpoint has announced itself") {
			t.Errorf("without a manager: %v", err)
		}
	}
	if _, err := m.Record().Newest(t.Context(), runs.Query{}); err == nil {
		t.Error("without a manager there is a record")
	}
	if len(said) != 1 || !strings.HasPrefix(said[0], "waits for a manager: ") || !strings.Contains(said[0], "what the cluster alone knows") {
		t.Errorf("the user reads %q", said)
	}
}

// A manager that goes away is found again, at the same address or at another one.
func TestAManagerThatComesBackIsFound(t *testing.T) {
	var away atomic.Bool
	pages := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		if away.Load() {
			panic(http.ErrAbortHandler) // the connection ends without an answer
		}
		_, _ = w.Write([]byte(`{"instance":"node-2","state":"working"}`))
	}))
	defer pages.Close()
	var said []string
	m := New(Options{Named: pages.URL + "/", Say: func(text string) { said = append(said, text) }})
	overview := func() (string, error) {
		m.again()
		states, err := m.Overviews(t.Context())
		if err != nil {
			return "", err
		}
		return states.Known[0].Instance, nil
	}
	if name, err := overview(); err != nil || name != "node-2" {
		t.Fatalf("the manager is %q, %v", name, err)
	}
	away.Store(true)
	if _, err := overview(); err == nil {
		t.Error("a manager that does not answer is no error")
	}
	away.Store(false)
	if name, err := overview(); err != nil || name != "node-2" {
		t.Errorf("the manager that is back is %q, %v", name, err)
	}
	if len(said) != 3 || said[0] != "the manager is at "+pages.URL || !strings.HasPrefix(said[1], "waits for the manager: ") || said[2] != said[0] {
		t.Errorf("the user reads %q", said)
	}
}

// Each manager that has announced itself is asked. One that refuses is named with its address, and the others count.
func TestAllManagersAreAsked(t *testing.T) {
	server, c := leases(t)
	announced := func(lease object.Key, handler http.HandlerFunc) string {
		pages := httptest.NewTLSServer(handler)
		t.Cleanup(pages.Close)
		err := server.Put(&coordinationv1.Lease{ObjectMeta: metav1.ObjectMeta{Namespace: lease.Namespace, Name: lease.Name,
			Labels:      map[string]string{"setpoint.io/announced": "true"},
			Annotations: map[string]string{"setpoint.io/serves": pages.URL, "setpoint.io/certificate": fingerprint(pages)}}})
		if err != nil {
			t.Fatal(err)
		}
		return pages.URL
	}
	answers := func(instance string, number uint64) http.HandlerFunc {
		return func(w http.ResponseWriter, r *http.Request) {
			if r.URL.Path == "/debug/runs" {
				_ = json.NewEncoder(w).Encode(gather.Found{Runs: []explain.Traced{{Run: runs.Run{Number: number, Controller: instance}}}})
				return
			}
			_ = json.NewEncoder(w).Encode(manager.Overview{Instance: instance, State: "working"})
		}
	}
	announced(object.Key{Namespace: "kube-system", Name: "setpoint-manager"}, answers("node-1", 7))
	announced(object.Key{Namespace: "shop", Name: "operator"}, answers("operator", 9))
	refuses := announced(object.Key{Namespace: "shop", Name: "refuses"}, func(w http.ResponseWriter, _ *http.Request) {
		http.Error(w, "not you", http.StatusForbidden)
	})
	m := New(Options{Client: c, Config: server.Config()})
	states, err := m.Overviews(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	var names []string
	for _, s := range states.Known {
		names = append(names, s.Instance)
	}
	slices.Sort(names)
	if !slices.Equal(names, []string{"node-1", "operator"}) {
		t.Errorf("the managers are %q", names)
	}
	if len(states.Unread) != 1 || states.Unread[0].URL != refuses || !strings.Contains(states.Unread[0].Text, "403 Forbidden: not you") {
		t.Errorf("not read are %+v, want the manager at %s", states.Unread, refuses)
	}
	found, err := m.Record().Newest(t.Context(), runs.Query{})
	if err != nil || len(found.Runs) != 2 || len(found.Unread) != 1 || !strings.Contains(found.Unread[0], "not you") {
		t.Errorf("the joined record has %+v, %v", found, err)
	}
}

// A manager that lets its callers wait is not asked again for a while. A caller whose own time is over says nothing about it.
func TestAManagerThatIsSilentIsLeftAlone(t *testing.T) {
	asked := 0
	var wait time.Duration
	o := &other{get: func(ctx context.Context, _ string) (int, []byte, error) {
		asked++
		began := time.Now()
		<-ctx.Done()
		wait = time.Since(began)
		return 0, nil, errors.New("no answer")
	}}
	short, cancel := context.WithTimeout(t.Context(), time.Millisecond)
	defer cancel()
	if _, _, err := o.read(short, "/"); err == nil || o.isSilent() {
		t.Errorf("after %v the manager is taken to be silent: %v", wait, err)
	}
	o.failed, o.until = errors.New("no answer"), time.Now().Add(silence)
	if _, _, err := o.read(t.Context(), "/"); err == nil || asked != 1 {
		t.Errorf("a silent manager was asked %d times, %v", asked, err)
	}
}

// What a manager answers that is no state is named.
func TestAnAnswerThatIsNoStateIsNamed(t *testing.T) {
	for body, want := range map[string]string{"no": "403 Forbidden: no", "{": "cannot read", "who": "requires authentication"} {
		o := &other{get: func(context.Context, string) (int, []byte, error) {
			switch body {
			case "no":
				return http.StatusForbidden, []byte(body), nil
			case "who":
				return http.StatusUnauthorized, nil, nil
			}
			return http.StatusOK, []byte(body), nil
		}}
		if _, err := o.overview(t.Context()); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%q: %v, want an error with %q", body, err, want)
		}
	}
}

// fingerprint returns that of the certificate of a server.
func fingerprint(s *httptest.Server) string {
	sum := sha256.Sum256(s.Certificate().Raw)
	return hex.EncodeToString(sum[:])
}
