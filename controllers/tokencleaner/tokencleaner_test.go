// Copyright The Setpoint Authors.
// SPDX-License-Identifier: Apache-2.0

package tokencleaner

import (
	"fmt"
	"math/rand/v2"
	"os"
	"slices"
	"strings"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/rest"

	"github.com/setpoint-io/setpoint/client"
	"github.com/setpoint-io/setpoint/internal/controlplanetest"
	"github.com/setpoint-io/setpoint/internal/managertest"
	"github.com/setpoint-io/setpoint/manager"
	"github.com/setpoint-io/setpoint/object"
)

var shared controlplanetest.Shared

func TestMain(m *testing.M) { os.Exit(shared.Main(m)) }

// start runs the controller as somebody who has its rights and no others.
func start(t *testing.T) *managertest.Process {
	t.Helper()
	return managertest.Run(t, shared.Get(t).RestrictedIn(t, Rights()), managertest.Making(New, Defaults()))
}

func secrets(t *testing.T) client.Typed[*corev1.Secret] {
	t.Helper()
	return client.For[*corev1.Secret](shared.Get(t).Client)
}

// token makes a bootstrap token, which change may change.
func token(t *testing.T, expiration string, change func(*corev1.Secret)) object.Key {
	t.Helper()
	id := fmt.Sprintf("%06x", rand.IntN(1<<24))
	secret := &corev1.Secret{
		ObjectMeta: metav1.ObjectMeta{Namespace: "kube-system", Name: "bootstrap-token-" + id},
		Type:       "bootstrap.kubernetes.io/token",
		Data:       map[string][]byte{"token-id": []byte(id), "token-secret": []byte("0123456789abcdef")},
	}
	if expiration != "" {
		secret.Data["expiration"] = []byte(expiration)
	}
	if change != nil {
		change(secret)
	}
	if _, err := secrets(t).Create(t.Context(), secret); err != nil {
		t.Fatal(err)
	}
	return object.KeyOf(secret)
}

func in(d time.Duration) string { return time.Now().Add(d).UTC().Format(time.RFC3339) }

func there(t *testing.T, key object.Key) bool {
	t.Helper()
	_, err := secrets(t).Get(t.Context(), key)
	if err != nil && !apierrors.IsNotFound(err) {
		t.Fatal(err)
	}
	return err == nil
}

func awaitGone(t *testing.T, keys ...object.Key) {
	t.Helper()
	for end := time.Now().Add(controlplanetest.Patience); ; time.Sleep(20 * time.Millisecond) {
		keys = slices.DeleteFunc(slices.Clone(keys), func(key object.Key) bool { return !there(t, key) })
		if len(keys) == 0 {
			return
		}
		if time.Now().After(end) {
			t.Fatalf("still there are %v", keys)
		}
	}
}

func TestTokensGoWhenTheirTimeHasComeAndNothingElseDoes(t *testing.T) {
	namespace := shared.Get(t).Namespace(t)
	expired, unreadable := token(t, in(-time.Hour), nil), token(t, "tomorrow", nil)
	soon := token(t, in(3*time.Second), nil)
	kept := map[string]object.Key{
		"one with time left":       token(t, in(time.Hour), nil),
		"one without end":          token(t, "", nil),
		"one of another type":      token(t, in(-time.Hour), func(s *corev1.Secret) { s.Type = corev1.SecretTypeOpaque }),
		"one in another namespace": token(t, in(-time.Hour), func(s *corev1.Secret) { s.Namespace = namespace }),
	}
	p := start(t)
	awaitGone(t, expired, unreadable)
	// One that comes while it runs.
	awaitGone(t, token(t, in(-time.Second), nil))
	awaitGone(t, soon)
	for what, key := range kept {
		if !there(t, key) {
			t.Errorf("%s is gone", what)
		}
	}
	p.Stop() // a write is seen on the server before its answer is counted
	if writes := p.Writes(); len(writes) != 4 {
		t.Errorf("writes %v, want 4 deletions", writes)
	}
	if warnings := p.Warnings(); len(warnings) > 0 {
		t.Errorf("it says %v", warnings)
	}
}

func TestATokenThatIsGivenMoreTimeStaysAndOneThatIsGivenLessGoes(t *testing.T) {
	start(t)
	longer, shorter := token(t, in(10*time.Second), nil), token(t, in(time.Hour), nil)
	for key, expiration := range map[object.Key]string{longer: in(time.Hour), shorter: in(-time.Second)} {
		change, err := client.MergePatch(map[string]any{"stringData": map[string]string{"expiration": expiration}})
		if err != nil {
			t.Fatal(err)
		}
		if _, err := secrets(t).Patch(t.Context(), key, change); err != nil {
			t.Fatal(err)
		}
	}
	awaitGone(t, shorter)
	// Its first time has come when that of one made now has.
	awaitGone(t, token(t, in(11*time.Second), nil))
	if !there(t, longer) {
		t.Error("the one with more time is gone")
	}
}

func TestKilledInTheMiddleTheNextOneDeletesTheRest(t *testing.T) {
	var keys []object.Key
	for range 30 {
		keys = append(keys, token(t, in(-time.Hour), nil))
	}
	first := start(t)
	for end := time.Now().Add(controlplanetest.Patience); len(first.Writes()) == 0; time.Sleep(time.Millisecond) {
		if time.Now().After(end) {
			t.Fatal("nothing is deleted")
		}
	}
	first.Kill()
	second := start(t)
	awaitGone(t, keys...)
	second.Stop()
	seen := map[string]bool{}
	for _, write := range append(first.Writes(), second.Writes()...) {
		if seen[write] || !strings.HasPrefix(write, "DELETE ") {
			t.Errorf("%s, again or for no reason", write)
		}
		seen[write] = true
	}
}

func TestFewerThanNoWorkersAreRefused(t *testing.T) {
	mgr, err := manager.New(&rest.Config{Host: "https://127.0.0.1:1"})
	if err != nil {
		t.Fatal(err)
	}
	if _, err := New(mgr, Options{Workers: -1}); err == nil || !strings.Contains(err.Error(), "-1") {
		t.Errorf("New = %v, want an error that names the number", err)
	}
}
