// Copyright The Setpoint Authors.
// SPDX-License-Identifier: Apache-2.0

package owned_test

import (
	"context"
	"os"
	"testing"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/runtime"

	"github.com/setpoint-io/setpoint/cache"
	"github.com/setpoint-io/setpoint/client"
	"github.com/setpoint-io/setpoint/controller/owned"
	"github.com/setpoint-io/setpoint/internal/controlplanetest"
	"github.com/setpoint-io/setpoint/object"
)

var shared controlplanetest.Shared

func TestMain(m *testing.M) { os.Exit(shared.Main(m)) }

var parts = object.Resource{Group: "owned.example.com", Version: "v1", Plural: "parts", Kind: "Part", Namespaced: true}

// part is a custom kind.
type part struct {
	metav1.TypeMeta   `json:",inline"`
	metav1.ObjectMeta `json:"metadata"`
}

func (p *part) DeepCopyObject() runtime.Object {
	return &part{TypeMeta: p.TypeMeta, ObjectMeta: *p.ObjectMeta.DeepCopy()}
}

// Servers take strategic merge patches of their own kinds alone.
func TestAnOwnerAdoptsAndReleasesObjectsOfACustomKind(t *testing.T) {
	cluster := shared.Get(t)
	cluster.Define(t, parts)
	t.Cleanup(func() { cluster.Undefine(t, parts) })
	scheme := runtime.NewScheme()
	scheme.AddKnownTypeWithName(parts.GroupVersionKind(), &part{})
	c, err := client.New(cluster.Config, client.WithScheme(scheme))
	if err != nil {
		t.Fatal(err)
	}
	owners, view := client.For[*corev1.ConfigMap](c), client.For[*part](c)
	ownerKind := corev1.SchemeGroupVersion.WithKind("ConfigMap")
	owner, err := owners.Create(t.Context(), &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Namespace: "default", GenerateName: "owner-"}})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = owners.Delete(context.Background(), object.KeyOf(owner)) })
	other := metav1.OwnerReference{APIVersion: "v1", Kind: "ConfigMap", Name: "other", UID: "other", BlockOwnerDeletion: new(true)}
	mine := owned.By(owner, ownerKind)
	for name, p := range map[string]metav1.ObjectMeta{
		"orphan":     {Labels: map[string]string{"app": "web"}, OwnerReferences: []metav1.OwnerReference{other}},
		"mismatched": {Labels: map[string]string{"app": "db"}, OwnerReferences: []metav1.OwnerReference{other, mine}},
		"last":       {OwnerReferences: []metav1.OwnerReference{mine}},
	} {
		p.Namespace, p.Name = "default", name
		if _, err := view.Create(t.Context(), &part{ObjectMeta: p}); err != nil {
			t.Fatal(err)
		}
	}
	factory := cache.NewFactory(c, nil)
	informer := cache.Informer[*part](factory)
	ctx, cancel := context.WithCancel(t.Context())
	ended := make(chan error, 1)
	go func() { ended <- factory.Run(ctx) }()
	defer func() {
		cancel()
		if err := <-ended; err != nil {
			t.Error(err)
		}
	}()
	if err := informer.WaitForSync(t.Context()); err != nil {
		t.Fatal(err)
	}
	before := informer.Snapshot()
	claimOf := func(items cache.Snapshot[*part]) ([]cache.Item[*part], error) {
		claim := owned.Claim[*part]{
			Server: view, Owner: owner, Kind: ownerKind, Selector: labels.SelectorFromSet(labels.Set{"app": "web"}),
			Live: func(ctx context.Context) (object.Object, error) { return owners.Get(ctx, object.KeyOf(owner)) },
		}
		return claim.Of(t.Context(), items.All())
	}
	claimed, err := claimOf(before)
	if err != nil || len(claimed) != 1 || claimed[0].Meta().Name != "orphan" {
		t.Fatalf("claimed %v, %v", claimed, err)
	}
	for name, want := range map[string][]metav1.OwnerReference{"orphan": {other, mine}, "mismatched": {other}, "last": nil} {
		p, err := view.Get(t.Context(), object.Key{Namespace: "default", Name: name})
		if err != nil {
			t.Fatal(err)
		}
		if len(p.OwnerReferences) != len(want) {
			t.Errorf("%s has the owners %+v, want %+v", name, p.OwnerReferences, want)
			continue
		}
		for i := range want {
			if have := p.OwnerReferences[i]; have.String() != want[i].String() {
				t.Errorf("%s has the owner %s, want %s", name, have.String(), want[i].String())
			}
		}
	}
	// What was read before is out of date: nothing of what somebody else did since is undone.
	if _, err := claimOf(before); err == nil {
		t.Error("objects that have changed were changed")
	}
}
