// Copyright The Setpoint Authors.
// SPDX-License-Identifier: Apache-2.0

package bootstrapsigner

import (
	"fmt"
	"maps"
	"math/rand/v2"
	"net/http"
	"os"
	"slices"
	"strings"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/setpoint-io/setpoint/client"
	"github.com/setpoint-io/setpoint/internal/controlplanetest"
	"github.com/setpoint-io/setpoint/internal/managertest"
	"github.com/setpoint-io/setpoint/manager"
	"github.com/setpoint-io/setpoint/object"
)

var shared controlplanetest.Shared

func TestMain(m *testing.M) { os.Exit(shared.Main(m)) }

// start runs the controller as somebody who has its rights and no others.
func start(t *testing.T) *managertest.Process { return startOn(t, nil) }

// startOn is start on another network.
func startOn(t *testing.T, network func(http.RoundTripper) http.RoundTripper) *managertest.Process {
	t.Helper()
	config := shared.Get(t).RestrictedIn(t, Rights())
	if network != nil {
		config.Wrap(network)
	}
	return managertest.Run(t, config, func(mgr *manager.Manager) (manager.Runnable, error) { return New(mgr) })
}

type roundTrip func(*http.Request) (*http.Response, error)

func (f roundTrip) RoundTrip(r *http.Request) (*http.Response, error) { return f(r) }

// publish makes the ConfigMap, without tokens of other tests.
func publish(t *testing.T, data map[string]string) {
	t.Helper()
	all, _, err := secrets(t).List(t.Context(), client.Selection{Namespace: "kube-system"})
	if err != nil {
		t.Fatal(err)
	}
	for _, secret := range all {
		if id, ok := strings.CutPrefix(secret.Name, "bootstrap-token-"); ok {
			withdraw(t, id)
		}
	}
	if err := configMaps(t).Delete(t.Context(), clusterInfo); err != nil && !apierrors.IsNotFound(err) {
		t.Fatal(err)
	}
	configMap := &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Namespace: clusterInfo.Namespace, Name: clusterInfo.Name}, Data: data}
	if _, err := configMaps(t).Create(t.Context(), configMap); err != nil {
		t.Fatal(err)
	}
}

func configMaps(t *testing.T) client.Typed[*corev1.ConfigMap] {
	t.Helper()
	return client.For[*corev1.ConfigMap](shared.Get(t).Client)
}

func secrets(t *testing.T) client.Typed[*corev1.Secret] {
	t.Helper()
	return client.For[*corev1.Secret](shared.Get(t).Client)
}

// give makes a token that may sign.
func give(t *testing.T, more map[string]string) (id string) {
	t.Helper()
	id = fmt.Sprintf("%06x", rand.IntN(1<<24))
	if _, err := secrets(t).Create(t.Context(), token(id, more)); err != nil {
		t.Fatal(err)
	}
	return id
}

func withdraw(t *testing.T, id string) {
	t.Helper()
	if err := secrets(t).Delete(t.Context(), object.Key{Namespace: "kube-system", Name: "bootstrap-token-" + id}); err != nil {
		t.Fatal(err)
	}
}

// change changes data of the ConfigMap; nil takes away.
func change(t *testing.T, data map[string]any) {
	t.Helper()
	patch, err := client.MergePatch(map[string]any{"data": data})
	if err != nil {
		t.Fatal(err)
	}
	if _, err := configMaps(t).Patch(t.Context(), clusterInfo, patch); err != nil {
		t.Fatal(err)
	}
}

// awaitSigned waits until the ConfigMap has this text, signed by these tokens and no others.
func awaitSigned(t *testing.T, content string, ids ...string) {
	t.Helper()
	want := map[string]string{"kubeconfig": content, "other": "stays"}
	for _, id := range ids {
		want["jws-kubeconfig-"+id] = signature(content, id, "0123456789abcdef")
	}
	for end := time.Now().Add(controlplanetest.Patience); ; time.Sleep(20 * time.Millisecond) {
		configMap, err := configMaps(t).Get(t.Context(), clusterInfo)
		if err != nil {
			t.Fatal(err)
		}
		if maps.Equal(configMap.Data, want) {
			return
		}
		if time.Now().After(end) {
			t.Fatalf("it has %v, want %v", slices.Sorted(maps.Keys(configMap.Data)), slices.Sorted(maps.Keys(want)))
		}
	}
}

func TestSignaturesFollowTheTokensAndTheText(t *testing.T) {
	publish(t, map[string]string{"kubeconfig": "first", "other": "stays", "jws-kubeconfig-gone00": "of somebody"})
	a := give(t, nil)
	give(t, map[string]string{"usage-bootstrap-signing": "false"})
	give(t, map[string]string{"expiration": "2020-01-01T00:00:00Z"})
	p := start(t)
	awaitSigned(t, "first", a)
	b := give(t, nil)
	awaitSigned(t, "first", a, b)
	withdraw(t, a)
	awaitSigned(t, "first", b)
	change(t, map[string]any{"kubeconfig": "second"})
	awaitSigned(t, "second", b)
	change(t, map[string]any{"jws-kubeconfig-" + b: "forged"})
	awaitSigned(t, "second", b)
	change(t, map[string]any{"jws-kubeconfig-" + b: nil})
	awaitSigned(t, "second", b)
	p.Stop() // a write is seen on the server before its answer is counted
	if n := len(p.Writes()); n != 6 {
		t.Errorf("%d writes for 6 changes: %v", n, p.Writes())
	}
	if warnings := p.Warnings(); len(warnings) > 0 {
		t.Errorf("it says %v", warnings)
	}
}

func TestASignatureGoesWhenItsTokenExpires(t *testing.T) {
	publish(t, map[string]string{"kubeconfig": "text", "other": "stays"})
	lasting := give(t, nil)
	start(t)
	awaitSigned(t, "text", lasting)
	ending := give(t, map[string]string{"expiration": time.Now().Add(10 * time.Second).UTC().Format(time.RFC3339)})
	awaitSigned(t, "text", lasting, ending)
	awaitSigned(t, "text", lasting) // nobody has changed anything
}

func TestAConfigMapThatComesLaterIsSignedAndOneWithoutTextIsLeftAlone(t *testing.T) {
	publish(t, map[string]string{"other": "stays", "jws-kubeconfig-gone00": "of somebody"})
	id := give(t, nil)
	p := start(t)
	if err := configMaps(t).Delete(t.Context(), clusterInfo); err != nil {
		t.Fatal(err)
	}
	configMap := &corev1.ConfigMap{
		ObjectMeta: metav1.ObjectMeta{Namespace: clusterInfo.Namespace, Name: clusterInfo.Name},
		Data:       map[string]string{"kubeconfig": "text", "other": "stays"},
	}
	if _, err := configMaps(t).Create(t.Context(), configMap); err != nil {
		t.Fatal(err)
	}
	awaitSigned(t, "text", id)
	p.Stop()
	if n := len(p.Writes()); n != 1 {
		t.Errorf("%d writes, want 1: %v", n, p.Writes())
	}
}

func TestKilledBeforeItHearsOfItsWriteTheNextOneHasNothingToWrite(t *testing.T) {
	publish(t, map[string]string{"kubeconfig": "text", "other": "stays"})
	ids := []string{give(t, nil), give(t, nil), give(t, nil)}
	wrote := make(chan struct{})
	first := startOn(t, func(next http.RoundTripper) http.RoundTripper {
		return roundTrip(func(r *http.Request) (*http.Response, error) {
			answer, err := next.RoundTrip(r)
			if r.Method == http.MethodPut && err == nil && answer.StatusCode == http.StatusOK {
				_ = answer.Body.Close()
				close(wrote) // once: a second write panics
				<-r.Context().Done()
				return nil, r.Context().Err()
			}
			return answer, err
		})
	})
	select {
	case <-wrote:
	case <-time.After(controlplanetest.Patience):
		t.Fatal("nothing is signed")
	}
	first.Kill()
	awaitSigned(t, "text", ids...)
	second := start(t)
	ids = append(ids, give(t, nil))
	awaitSigned(t, "text", ids...)
	second.Stop()
	if n := len(second.Writes()); n != 1 {
		t.Errorf("%d writes for one more token: %v", n, second.Writes())
	}
}
