// Copyright The Setpoint Authors.
// SPDX-License-Identifier: Apache-2.0

package legacytokencleaner

import (
	"context"
	"errors"
	"log/slog"
	"net/http"
	"os"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/rest"

	"github.com/setpoint-io/setpoint/client"
	"github.com/setpoint-io/setpoint/internal/controlplanetest"
	"github.com/setpoint-io/setpoint/manager"
	"github.com/setpoint-io/setpoint/object"
)

var shared controlplanetest.Shared

func TestMain(m *testing.M) { os.Exit(shared.Main(m)) }

// start runs the controller some time in the future, as somebody who has its rights and
// no others. It returns how to end it.
func start(t *testing.T, ahead time.Duration, wrap func(http.RoundTripper) http.RoundTripper) func() {
	t.Helper()
	config := shared.Get(t).Restricted(t, Rights())
	if wrap != nil {
		config.Wrap(wrap)
	}
	mgr, err := manager.New(config, manager.Log(slog.New(slog.NewTextHandler(t.Output(), nil))))
	if err != nil {
		t.Fatal(err)
	}
	c, err := newAt(mgr, Defaults(), func() time.Time { return time.Now().Add(ahead) })
	if err != nil {
		t.Fatal(err)
	}
	if err := mgr.Add(c); err != nil {
		t.Fatal(err)
	}
	ctx, stop := context.WithCancel(context.Background())
	ended := make(chan error, 1)
	go func() { ended <- mgr.Run(ctx) }()
	end := sync.OnceFunc(func() {
		stop()
		if err := <-ended; err != nil {
			t.Errorf("the manager ended with %v", err)
		}
	})
	t.Cleanup(end)
	return end
}

// old makes a token as Kubernetes made them before 1.24, which its account names.
func old(t *testing.T, namespace, name string, labels map[string]string) object.Key {
	t.Helper()
	accounts := client.For[*corev1.ServiceAccount](shared.Get(t).Client)
	account, err := accounts.Get(t.Context(), object.Key{Namespace: namespace, Name: "default"})
	if err != nil {
		t.Fatal(err)
	}
	account.Secrets = append(account.Secrets, corev1.ObjectReference{Name: name})
	if _, err := accounts.Update(t.Context(), account); err != nil {
		t.Fatal(err)
	}
	return byHand(t, namespace, name, labels)
}

// byHand makes a token that somebody asked for.
func byHand(t *testing.T, namespace, name string, labels map[string]string) object.Key {
	t.Helper()
	secret := &corev1.Secret{
		ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: name, Labels: labels, Annotations: map[string]string{corev1.ServiceAccountNameKey: "default"}},
		Type:       corev1.SecretTypeServiceAccountToken,
	}
	if _, err := client.For[*corev1.Secret](shared.Get(t).Client).Create(t.Context(), secret); err != nil {
		t.Fatal(err)
	}
	return object.KeyOf(secret)
}

func get(t *testing.T, key object.Key) (*corev1.Secret, error) {
	t.Helper()
	return client.For[*corev1.Secret](shared.Get(t).Client).Get(t.Context(), key)
}

// await waits until a Secret, nil if it is gone, is as wanted.
func await(t *testing.T, key object.Key, what string, holds func(*corev1.Secret) bool) {
	t.Helper()
	deadline := time.After(controlplanetest.Patience)
	for {
		secret, err := get(t, key)
		if apierrors.IsNotFound(err) {
			secret, err = nil, nil
		}
		if err != nil {
			t.Fatal(err)
		}
		if holds(secret) {
			return
		}
		select {
		case <-time.After(20 * time.Millisecond):
		case <-deadline:
			t.Fatalf("%s: %s: not so; it is %v", key, what, secret)
		}
	}
}

// tracked waits until the server has written down since when it notes uses, which it
// does a moment after its start.
func tracked(t *testing.T) {
	t.Helper()
	if _, err := shared.Get(t).Kubectl("wait", "--for=create", "configmap/"+trackingConfigMap, "-n", "kube-system", "--timeout=60s"); err != nil {
		t.Fatal(err)
	}
}

func TestTokensThatNobodyUsesAreMarkedAndLaterDeleted(t *testing.T) {
	tracked(t)
	namespace := shared.Get(t).Namespace(t)
	unused := old(t, namespace, "unused", nil)
	used := old(t, namespace, "used", map[string]string{lastUsed: time.Now().Add(400 * 24 * time.Hour).UTC().Format(time.DateOnly)})
	unreadable := old(t, namespace, "unreadable", map[string]string{lastUsed: "yesterday"})
	mounted := old(t, namespace, "mounted", nil)
	// Marked on a day so that it is due to go at the second look. Its Pod came later.
	marked := old(t, namespace, "marked", map[string]string{invalidSince: time.Now().UTC().Format(time.DateOnly)})
	// That of an account of the same name which is gone.
	predecessors := old(t, namespace, "predecessors", nil)
	patch, err := client.MergePatch(map[string]any{"metadata": map[string]any{"annotations": map[string]string{corev1.ServiceAccountUIDKey: "another"}}})
	if err != nil {
		t.Fatal(err)
	}
	if _, err := client.For[*corev1.Secret](shared.Get(t).Client).Patch(t.Context(), predecessors, patch); err != nil {
		t.Fatal(err)
	}
	own := byHand(t, namespace, "own", nil)
	pod := &corev1.Pod{
		ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: "mounts"},
		Spec: corev1.PodSpec{
			Containers: []corev1.Container{{Name: "c", Image: "i"}},
			Volumes: []corev1.Volume{
				{Name: "mounted", VolumeSource: corev1.VolumeSource{Secret: &corev1.SecretVolumeSource{SecretName: "mounted"}}},
				{Name: "marked", VolumeSource: corev1.VolumeSource{Secret: &corev1.SecretVolumeSource{SecretName: "marked"}}},
			},
		},
	}
	if _, err := client.For[*corev1.Pod](shared.Get(t).Client).Create(t.Context(), pod); err != nil {
		t.Fatal(err)
	}

	end := start(t, 400*24*time.Hour, nil)
	await(t, unused, "it is marked", func(s *corev1.Secret) bool { return s != nil && s.Labels[invalidSince] != "" })
	end()
	// Two years later by the clock of the manager.
	end = start(t, 800*24*time.Hour, nil)
	await(t, unused, "it is deleted", func(s *corev1.Secret) bool { return s == nil })
	end()
	for _, key := range []object.Key{unreadable, mounted, predecessors, own} {
		if s, err := get(t, key); err != nil || s.Labels[invalidSince] != "" {
			t.Errorf("%s: %v, %v, want it as it was", key, s, err)
		}
	}
	if s, err := get(t, marked); err != nil {
		t.Errorf("%s, which a Pod mounts: %v, %v, want it kept", marked, s, err)
	}
	if s, err := get(t, used); err != nil {
		t.Errorf("%s, unused for a year only at the second look: %v, %v, want it marked at most", used, s, err)
	}
}

func TestNothingIsTouchedBeforeUsesHaveBeenNotedForLongEnough(t *testing.T) {
	tracked(t)
	namespace := shared.Get(t).Namespace(t)
	key := old(t, namespace, "unused", nil)
	asked := make(chan struct{}, 1)
	end := start(t, 300*24*time.Hour, func(next http.RoundTripper) http.RoundTripper {
		return roundTrip(func(r *http.Request) (*http.Response, error) {
			answer, err := next.RoundTrip(r)
			if strings.HasSuffix(r.URL.Path, "/"+trackingConfigMap) {
				asked <- struct{}{}
			}
			if r.Method != http.MethodGet && r.Method != http.MethodPost {
				t.Errorf("%s %s", r.Method, r.URL)
			}
			return answer, err
		})
	})
	select {
	case <-asked:
	case <-time.After(controlplanetest.Patience):
		t.Fatal("nobody looks")
	}
	end() // lets the look come to its end
	if s, err := get(t, key); err != nil || s.Labels[invalidSince] != "" {
		t.Errorf("%v, %v, want it as it was", s, err)
	}
}

type roundTrip func(*http.Request) (*http.Response, error)

func (f roundTrip) RoundTrip(r *http.Request) (*http.Response, error) { return f(r) }

func TestKilledInTheMiddleNothingIsMarkedTwice(t *testing.T) {
	tracked(t)
	namespace := shared.Get(t).Namespace(t)
	var keys []object.Key
	for _, name := range []string{"a", "b", "c", "d", "e", "f"} {
		keys = append(keys, old(t, namespace, name, nil))
	}
	var mu sync.Mutex
	marked := map[string]int{}
	live := func(dies bool) (end func(), wrote <-chan struct{}) {
		first := make(chan struct{}, len(keys))
		var dead atomic.Bool
		return start(t, 400*24*time.Hour, func(next http.RoundTripper) http.RoundTripper {
			return roundTrip(func(r *http.Request) (*http.Response, error) {
				if dead.Load() {
					return nil, errors.New("the process is dead")
				}
				answer, err := next.RoundTrip(r)
				if err == nil && r.Method == http.MethodPatch && answer.StatusCode == http.StatusOK && strings.Contains(r.URL.Path, "/"+namespace+"/") {
					mu.Lock()
					marked[r.URL.Path]++
					mu.Unlock()
					dead.Store(dies)
					first <- struct{}{}
				}
				return answer, err
			})
		}), first
	}
	for range 3 {
		end, wrote := live(true)
		select {
		case <-wrote:
		case <-time.After(controlplanetest.Patience):
			t.Fatal("nothing is marked")
		}
		end()
	}
	live(false)
	for _, key := range keys {
		await(t, key, "it is marked", func(s *corev1.Secret) bool { return s != nil && s.Labels[invalidSince] != "" })
	}
	// One whose answer a dead process did not live to see is done and not counted.
	mu.Lock()
	defer mu.Unlock()
	for path, n := range marked {
		if n > 1 {
			t.Errorf("%d writes to %s", n, path)
		}
	}
}

func TestOptionsThatMakeNoSenseAreRefused(t *testing.T) {
	mgr, err := manager.New(&rest.Config{Host: "https://127.0.0.1:1"})
	if err != nil {
		t.Fatal(err)
	}
	if _, err := New(mgr, Options{CleanUpPeriod: -time.Hour}); err == nil || !strings.Contains(err.Error(), "-1h") {
		t.Errorf("New = %v, want an error that names the period", err)
	}
}
