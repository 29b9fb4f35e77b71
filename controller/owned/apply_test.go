// Copyright The Setpoint Authors.
// SPDX-License-Identifier: Apache-2.0

package owned_test

import (
	"context"
	"maps"
	"net/http"
	"strings"
	"sync/atomic"
	"testing"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/rest"

	"github.com/setpoint-io/setpoint/cache"
	"github.com/setpoint-io/setpoint/client"
	"github.com/setpoint-io/setpoint/controller/owned"
	"github.com/setpoint-io/setpoint/internal/controlplanetest"
	"github.com/setpoint-io/setpoint/object"
)

// patches counts the patches that pass.
type patches struct {
	http.RoundTripper
	count atomic.Int32
}

func (p *patches) RoundTrip(r *http.Request) (*http.Response, error) {
	if r.Method == http.MethodPatch {
		p.count.Add(1)
	}
	return p.RoundTripper.RoundTrip(r)
}

// applying is an Applier of ConfigMaps, and the Secret that owns them.
type applying struct {
	*owned.Applier[*corev1.ConfigMap]
	t       *testing.T
	maps    client.Typed[*corev1.ConfigMap]
	seen    cache.SharedInformer[*corev1.ConfigMap]
	owner   *corev1.Secret
	patches *patches
}

func newApplying(t *testing.T, cluster *controlplanetest.Cluster, options ...cache.InformerOption) *applying {
	t.Helper()
	a := &applying{t: t, patches: &patches{}}
	config := rest.CopyConfig(cluster.Config)
	config.Wrap(func(next http.RoundTripper) http.RoundTripper {
		a.patches.RoundTripper = next
		return a.patches
	})
	c, err := client.New(config)
	if err != nil {
		t.Fatal(err)
	}
	a.maps = client.For[*corev1.ConfigMap](cluster.Client)
	factory := cache.NewFactory(c, nil)
	a.seen = cache.Informer[*corev1.ConfigMap](factory, options...)
	ctx, stop := context.WithCancel(t.Context())
	ended := make(chan error, 1)
	go func() { ended <- factory.Run(ctx) }()
	t.Cleanup(func() {
		stop()
		if err := <-ended; err != nil {
			t.Error(err)
		}
	})
	if err := a.seen.WaitForSync(ctx); err != nil {
		t.Fatal(err)
	}
	a.Applier = owned.NewApplier(a.seen, "test")
	a.owner, err = client.For[*corev1.Secret](cluster.Client).Create(t.Context(), &corev1.Secret{
		ObjectMeta: metav1.ObjectMeta{Namespace: cluster.Namespace(t), Name: "owner"},
	})
	if err != nil {
		t.Fatal(err)
	}
	return a
}

func (a *applying) named(data map[string]string) *corev1.ConfigMap {
	return &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Namespace: a.owner.Namespace, Name: "it"}, Data: data}
}

// apply applies, and waits until the informer has seen it, as a controller does. It
// returns how many requests that took.
func (a *applying) apply(data map[string]string) int {
	a.t.Helper()
	before := a.patches.count.Load()
	now, err := a.Apply(a.t.Context(), a.owner, a.named(data))
	if err != nil {
		a.t.Fatal(err)
	}
	if !maps.Equal(now.Data, data) || !metav1.IsControlledBy(now, a.owner) {
		a.t.Errorf("it is %v of %v, want %v of the owner", now.Data, now.OwnerReferences, data)
	}
	a.await(now)
	return int(a.patches.count.Load() - before)
}

func (a *applying) await(now *corev1.ConfigMap) {
	a.t.Helper()
	version, err := object.ParseVersion(now.ResourceVersion)
	if err != nil {
		a.t.Fatal(err)
	}
	seen, giveUp := a.seen.Observed(version)
	defer giveUp()
	select {
	case <-seen:
	case <-a.t.Context().Done():
		a.t.Fatal("the informer does not see it")
	}
}

func TestWhatIsAppliedStands(t *testing.T) {
	cluster := shared.Get(t)

	t.Run("and costs a request only if something changed", func(t *testing.T) {
		a := newApplying(t, cluster)
		one, two := map[string]string{"a": "1"}, map[string]string{"b": "2"}
		if n := a.apply(one); n != 1 {
			t.Errorf("the first apply took %d requests", n)
		}
		if n := a.apply(one); n != 0 {
			t.Errorf("the same again took %d requests", n)
		}
		if n := a.apply(two); n != 1 { // apply has seen that "a" is gone
			t.Errorf("another one took %d requests", n)
		}
		drifted, err := client.MergePatch(map[string]any{"data": map[string]any{"b": "3"}})
		if err != nil {
			t.Fatal(err)
		}
		changed, err := a.maps.Patch(t.Context(), object.KeyOf(a.named(nil)), drifted)
		if err != nil {
			t.Fatal(err)
		}
		a.await(changed)
		if n := a.apply(two); n != 1 {
			t.Errorf("changing it back took %d requests", n)
		}
		if n := a.apply(two); n != 0 {
			t.Errorf("the same again took %d requests", n)
		}
	})

	t.Run("unless it is somebody else's", func(t *testing.T) {
		for name, options := range map[string][]cache.InformerOption{
			"that the informer shows":      nil,
			"that the informer leaves out": {cache.WithLabels("example.com/ours")},
		} {
			t.Run(name, func(t *testing.T) {
				a := newApplying(t, cluster, options...)
				theirs, err := a.maps.Create(t.Context(), a.named(nil))
				if err != nil {
					t.Fatal(err)
				}
				if options == nil {
					a.await(theirs)
				}
				_, err = a.Apply(t.Context(), a.owner, a.named(map[string]string{"a": "1"}))
				if err == nil || !strings.Contains(err.Error(), "there is one already, and Secret owner does not manage it") {
					t.Errorf("applying: %v, want a refusal", err)
				}
				if n := a.patches.count.Load(); n != 0 {
					t.Errorf("%d requests were sent", n)
				}
			})
		}
	})

	t.Run("in the namespace of its owner", func(t *testing.T) {
		a := newApplying(t, cluster)
		o := a.named(nil)
		o.Namespace = "default"
		if _, err := a.Apply(t.Context(), a.owner, o); err == nil || !strings.Contains(err.Error(), "its owner is in namespace "+a.owner.Namespace) {
			t.Errorf("applying elsewhere: %v, want a refusal", err)
		}
	})
}
