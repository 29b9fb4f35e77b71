// Copyright The Setpoint Authors.
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"os"
	"path"
	"strings"
	"sync"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/yaml"

	"github.com/setpoint-io/setpoint/client"
	"github.com/setpoint-io/setpoint/manager"
	"github.com/setpoint-io/setpoint/object"
	"github.com/setpoint-io/setpoint/setpointtest"
)

// fake is a provider on the loopback. What it does with a balancer is decided by the
// last part of its name, up to a dash.
type fake struct {
	*httptest.Server
	release func() // ends what hangs
	hanging chan struct{}

	mu      sync.Mutex
	asked   map[string]int    // by name
	names   map[string]string // by id
	removed map[string]bool   // by name
}

func newFake(t *testing.T) *fake {
	f := &fake{hanging: make(chan struct{}), asked: map[string]int{}, names: map[string]string{}, removed: map[string]bool{}}
	f.release = sync.OnceFunc(func() { close(f.hanging) })
	f.Server = httptest.NewServer(f)
	t.Cleanup(func() { f.release(); f.Close() })
	return f
}

func (f *fake) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	id := strings.TrimPrefix(r.URL.Path, "/balancers/")
	var want balancer
	if r.Method == http.MethodPut && json.NewDecoder(r.Body).Decode(&want) != nil {
		http.Error(w, "malformed", http.StatusBadRequest)
		return
	}
	f.mu.Lock()
	if r.Method == http.MethodDelete {
		f.removed[f.names[id]] = true
		f.mu.Unlock()
		w.WriteHeader(http.StatusNoContent)
		return
	}
	f.names[id] = want.Name
	f.asked[want.Name]++
	asked := f.asked[want.Name]
	f.mu.Unlock()
	behaviour, _, _ := strings.Cut(path.Base(want.Name), "-")
	switch {
	case behaviour == "hanging":
		select {
		case <-f.hanging:
		case <-r.Context().Done():
		}
	case behaviour == "busy", behaviour == "slow" && asked == 1:
		w.Header().Set("Retry-After", map[string]string{"busy": "3600", "slow": "1"}[behaviour])
		http.Error(w, "being built", http.StatusServiceUnavailable)
	case behaviour == "failing" && asked < 2:
		http.Error(w, "out of order", http.StatusInternalServerError)
	case behaviour == "forbidden" && len(want.Ports) == 1:
		http.Error(w, "one port is too few", http.StatusUnprocessableEntity)
	default:
		fmt.Fprint(w, `{"address": "203.0.113.7"}`)
	}
}

// scene is a controller at work in a namespace of its own, with no more than the rights
// of rbac.yaml.
type scene struct {
	*fake
	t         *testing.T
	namespace string
	client    *client.Client
	services  client.Typed[*corev1.Service]
}

func begin(t *testing.T, timeout time.Duration) *scene {
	t.Helper()
	cluster := setpointtest.Cluster(t)
	text, err := os.ReadFile("rbac.yaml")
	if err != nil {
		t.Fatal(err)
	}
	var role rbacv1.ClusterRole
	if err := yaml.Unmarshal(text, &role); err != nil {
		t.Fatal(err)
	}
	config := setpointtest.Restricted(t, cluster.Config, role.Rules)
	s := &scene{fake: newFake(t), t: t, namespace: cluster.Namespace(t), client: cluster.Client, services: client.For[*corev1.Service](cluster.Client)}
	ctx, stop := context.WithCancel(t.Context())
	ended := make(chan error, 1)
	go func() {
		ended <- run(ctx, config, &provider{url: s.URL, timeout: timeout},
			manager.Log(slog.New(slog.NewTextHandler(t.Output(), nil))))
	}()
	t.Cleanup(func() {
		stop()
		if err := <-ended; err != nil {
			t.Error(err)
		}
	})
	return s
}

// askedFor returns how often the provider was asked for the balancer of a Service.
func (s *scene) askedFor(name string) int {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.asked[s.namespace+"/"+name]
}

func (s *scene) create(name string) {
	s.t.Helper()
	_, err := s.services.Create(s.t.Context(), &corev1.Service{
		ObjectMeta: metav1.ObjectMeta{Namespace: s.namespace, Name: name},
		Spec: corev1.ServiceSpec{
			Type: corev1.ServiceTypeLoadBalancer, LoadBalancerClass: new(class),
			AllocateLoadBalancerNodePorts: new(false),
			Ports:                         []corev1.ServicePort{{Name: "http", Port: 80}},
		},
	})
	if err != nil {
		s.t.Fatal(err)
	}
}

// eventually waits for a reason in the condition of a Service.
func (s *scene) eventually(name, reason string) *corev1.Service {
	s.t.Helper()
	key := object.Key{Namespace: s.namespace, Name: name}
	return setpointtest.Await(s.t, s.client, key, name+" is "+reason, func(service *corev1.Service) bool {
		c := meta.FindStatusCondition(service.Status.Conditions, condition)
		return c != nil && c.Reason == reason
	})
}

func message(service *corev1.Service) string {
	return meta.FindStatusCondition(service.Status.Conditions, condition).Message
}

func TestAServiceGetsABalancerAndGoesAfterIt(t *testing.T) {
	s := begin(t, time.Minute)
	s.create("web")
	service := s.eventually("web", "Ready")
	if ingress := service.Status.LoadBalancer.Ingress; len(ingress) != 1 || ingress[0].IP != "203.0.113.7" {
		t.Errorf("the status has %v", ingress)
	}
	if err := s.services.Delete(t.Context(), object.KeyOf(service)); err != nil {
		t.Fatal(err)
	}
	setpointtest.AwaitGone[*corev1.Service](t, s.client, object.KeyOf(service))
	s.mu.Lock()
	defer s.mu.Unlock()
	if !s.removed[s.namespace+"/web"] {
		t.Error("the Service went before its balancer")
	}
}

func TestNothingIsAskedBeforeTheTimeThatTheProviderNames(t *testing.T) {
	s := begin(t, time.Minute)
	s.create("busy")
	service := s.eventually("busy", "Waiting")
	if m := message(service); !strings.Contains(m, "503") || !strings.Contains(m, "being built; next try at ") {
		t.Errorf("the status says %q", m)
	}
	// What happened to "busy" before is over when a later Service has gone the same way
	// twice.
	for _, name := range []string{"web-1", "web-2"} {
		s.create(name)
		s.eventually(name, "Ready")
	}
	if asked := s.askedFor("busy"); asked != 1 {
		t.Errorf("the provider was asked %d times, want once in an hour", asked)
	}
}

func TestTheProviderIsAskedAgainAfterThatTime(t *testing.T) {
	s := begin(t, time.Minute)
	s.create("slow")
	s.eventually("slow", "Ready")
	if asked := s.askedFor("slow"); asked != 2 {
		t.Errorf("the provider was asked %d times, want 2", asked)
	}
}

func TestAFailureIsTriedAgain(t *testing.T) {
	s := begin(t, time.Minute)
	s.create("failing")
	s.eventually("failing", "Ready")
}

func TestARefusalIsFinalUntilTheServiceChanges(t *testing.T) {
	s := begin(t, time.Minute)
	s.create("forbidden")
	service := s.eventually("forbidden", "Refused")
	if m := message(service); !strings.Contains(m, "one port is too few; next try when the Service changes") {
		t.Errorf("the status says %q", m)
	}
	if asked := s.askedFor("forbidden"); asked != 1 {
		t.Errorf("the provider was asked %d times, want once", asked)
	}
	service.Spec.Ports = append(service.Spec.Ports, corev1.ServicePort{Name: "https", Port: 443})
	if _, err := s.services.Update(t.Context(), service); err != nil {
		t.Fatal(err)
	}
	s.eventually("forbidden", "Ready")
}

func TestAServiceWhoseCallHangsSaysSoAndIsTriedAgain(t *testing.T) {
	s := begin(t, 50*time.Millisecond)
	s.create("hanging")
	service := s.eventually("hanging", "Failed")
	if m := message(service); !strings.Contains(m, "no answer within 50ms") {
		t.Errorf("the status says %q", m)
	}
	setpointtest.Eventually(t, "it is tried again", func() error {
		if s.askedFor("hanging") < 2 {
			return errors.New("it was tried once")
		}
		return nil
	})
}

func TestServicesWhoseCallsHangDelayNoOther(t *testing.T) {
	s := begin(t, time.Hour)
	for i := range 20 {
		s.create(fmt.Sprint("hanging-", i))
	}
	setpointtest.Eventually(t, "all of them hang", func() error {
		for i := range 20 {
			if asked := s.askedFor(fmt.Sprint("hanging-", i)); asked != 1 {
				return fmt.Errorf("of hanging-%d there were %d calls", i, asked)
			}
		}
		return nil
	})
	s.create("web")
	s.eventually("web", "Ready")
	s.release() // or the controller would wait for them at its end
}

func TestAnswersDecideWhatComesNext(t *testing.T) {
	for name, test := range map[string]struct {
		failure error
		after   time.Duration
		reason  string
		message string
	}{
		"an address":        {nil, 0, "Ready", "the balancer leads here"},
		"later":             {&laterError{time.Minute, "being built"}, time.Minute, "Waiting", "being built; next try at 2026-01-02T03:05:05Z"},
		"refused":           {&refusedError{"no such port"}, 0, "Refused", "no such port; next try when the Service changes"},
		"refused, in words": {fmt.Errorf("asking: %w", &refusedError{"no"}), 0, "Refused", "asking: no; next try when the Service changes"},
		"a failure":         {errors.New("out of order"), 0, "Failed", "out of order; the request is tried again"},
	} {
		t.Run(name, func(t *testing.T) {
			result, err := next(test.failure)
			if result.After != test.after {
				t.Errorf("the next try is after %s, want %s", result.After, test.after)
			}
			_, waits := errors.AsType[*laterError](test.failure)
			if want := test.failure != nil && !waits; (err != nil) != want {
				t.Errorf("the error is %v, want one: %t", err, want)
			}
			service := &corev1.Service{}
			describe(service, "", test.failure, time.Date(2026, 1, 2, 3, 4, 5, 0, time.UTC))
			if c := service.Status.Conditions[0]; c.Reason != test.reason || c.Message != test.message {
				t.Errorf("the condition says %s: %q, want %s: %q", c.Reason, c.Message, test.reason, test.message)
			}
		})
	}
}
