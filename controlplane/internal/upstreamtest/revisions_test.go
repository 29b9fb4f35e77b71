// Copyright The Setpoint Authors.
// SPDX-License-Identifier: Apache-2.0

package upstreamtest

import (
	"bytes"
	"encoding/json"
	"maps"
	"slices"
	"strings"
	"testing"
	_ "unsafe" // for linknames

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	apiequality "k8s.io/apimachinery/pkg/api/equality"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/kubernetes/pkg/api/legacyscheme"
	_ "k8s.io/kubernetes/pkg/apis/apps/install" // registers defaults
	_ "k8s.io/kubernetes/pkg/apis/core/install"
	upstream "k8s.io/kubernetes/pkg/controller"
	"k8s.io/kubernetes/pkg/controller/daemon"
	"k8s.io/kubernetes/pkg/controller/history"
	"k8s.io/kubernetes/pkg/controller/statefulset"
	"k8s.io/utils/lru"

	"github.com/setpoint-io/setpoint/controller/revisions"
)

//go:linkname newRevision k8s.io/kubernetes/pkg/controller/statefulset.newRevision
func newRevision(set *appsv1.StatefulSet, revision int64, collisions *int32) (*appsv1.ControllerRevision, error)

//go:linkname getPatch k8s.io/kubernetes/pkg/controller/daemon.getPatch
func getPatch(set *appsv1.DaemonSet) ([]byte, error)

//go:linkname setMatchesLatestExistingRevision k8s.io/kubernetes/pkg/controller/statefulset.setMatchesLatestExistingRevision
func setMatchesLatestExistingRevision(set *appsv1.StatefulSet, proposed, latest *appsv1.ControllerRevision, memory *lru.Cache) bool

//go:linkname nextRevision k8s.io/kubernetes/pkg/controller/statefulset.nextRevision
func nextRevision(revisions []*appsv1.ControllerRevision) int64

// templates is how many objects each test generates.
const templates = 100

// collisionCount draws the count of a status.
func collisionCount(g generator) *int32 { return maybe(g, int32(g.IntN(3))) }

func statefulSet(g generator) *appsv1.StatefulSet {
	set := &appsv1.StatefulSet{ObjectMeta: metav1.ObjectMeta{
		Namespace: "shop", Name: one(g, "web", strings.Repeat("w", 230)), UID: "web-uid", Generation: 1, Annotations: map[string]string{"note": "a"},
	}}
	fill(g, &set.Spec.Template)
	return set
}

func TestRevisionsOfStatefulSetsAreUpstreams(t *testing.T) {
	g := generate(t)
	for range templates {
		set, collisions := statefulSet(g), collisionCount(g)
		want, err := newRevision(set, 7, collisions)
		if err != nil {
			t.Fatal(err)
		}
		state, err := revisions.StatefulSet(set)
		if err != nil {
			t.Fatal(err)
		}
		got := state.Revision(7, collisions)
		want.Namespace = set.Namespace // upstream sets it when it creates the revision
		if !apiequality.Semantic.DeepEqual(got, want) || !bytes.Equal(got.Data.Raw, want.Data.Raw) {
			t.Fatalf("ours is %s %v %v\n%s\nupstream's %s %v %v\n%s", got.Name, got.Labels, got.Annotations, got.Data.Raw, want.Name, want.Labels, want.Annotations, want.Data.Raw)
		}
		if wasHere := state.Equal([]*appsv1.ControllerRevision{want}); len(wasHere) != 1 || !history.EqualRevision(got, want) {
			t.Fatalf("the revision is not found by its data: %s", want.Data.Raw)
		}
		restored, err := statefulset.ApplyRevision(&appsv1.StatefulSet{}, got)
		if err != nil {
			t.Fatal(err)
		}
		if template, err := revisions.Template(got); err != nil || !apiequality.Semantic.DeepEqual(*template, restored.Spec.Template) {
			t.Fatalf("ours reads the template %v, %v\nupstream %v", template, err, restored.Spec.Template)
		}
	}
}

func TestRevisionsOfDaemonSetsAreUpstreams(t *testing.T) {
	g := generate(t)
	for range templates {
		set := &appsv1.DaemonSet{ObjectMeta: metav1.ObjectMeta{Namespace: "shop", Name: "agent", UID: "agent-uid", Annotations: map[string]string{"note": "a"}}}
		fill(g, &set.Spec.Template)
		set.Status.CollisionCount = collisionCount(g)
		state, err := revisions.DaemonSet(set)
		if err != nil {
			t.Fatal(err)
		}
		got := state.Revision(7, set.Status.CollisionCount)
		want, err := getPatch(set)
		if err != nil || !bytes.Equal(got.Data.Raw, want) {
			t.Fatalf("ours is\n%s\nupstream's, %v,\n%s", got.Data.Raw, err, want)
		}
		if match, err := daemon.Match(set, got); err != nil || !match {
			t.Fatalf("upstream does not recognize %s: %v", got.Data.Raw, err)
		}
		hash := upstream.ComputeHash(&set.Spec.Template, set.Status.CollisionCount)
		labels := maps.Clone(set.Spec.Template.Labels)
		if labels == nil {
			labels = map[string]string{}
		}
		labels[appsv1.DefaultDaemonSetUniqueLabelKey] = hash
		if got.Name != "agent-"+hash || !maps.Equal(got.Labels, labels) || !maps.Equal(got.Annotations, set.Annotations) {
			t.Fatalf("ours is %s %v %v, upstream's hash %s", got.Name, got.Labels, got.Annotations, hash)
		}
	}
}

// An older revision was written without some of the fields that the API server fills in.
func TestRevisionsThatAskForTheSameAreUpstreams(t *testing.T) {
	g, same := generate(t), 0
	for range templates {
		set := statefulSet(g)
		set.Spec.Replicas = new(int32(1))
		legacyscheme.Scheme.Default(set)
		proposed, err := newRevision(set, 2, nil)
		if err != nil {
			t.Fatal(err)
		}
		var older map[string]any
		if err := json.Unmarshal(proposed.Data.Raw, &older); err != nil {
			t.Fatal(err)
		}
		template := older["spec"].(map[string]any)["template"].(map[string]any)
		for range g.IntN(4) {
			drop(g, template)
		}
		template["metadata"].(map[string]any)["creationTimestamp"] = nil
		data, err := json.Marshal(older)
		if err != nil {
			t.Fatal(err)
		}
		latest := &appsv1.ControllerRevision{ObjectMeta: metav1.ObjectMeta{ResourceVersion: "1"}, Data: runtime.RawExtension{Raw: data}}
		state, err := revisions.StatefulSet(set)
		if err != nil {
			t.Fatal(err)
		}
		want := setMatchesLatestExistingRevision(set, proposed, latest, lru.New(10))
		if got := state.Same(latest); got != want {
			t.Fatalf("ours says %t, upstream %t: is\n%s\nwas\n%s", got, want, proposed.Data.Raw, data)
		}
		if want {
			same++
		}
	}
	if same < templates/10 || same > templates*9/10 {
		t.Errorf("%d of %d revisions ask for the same as the newest", same, templates)
	}
}

// drop removes one field at random, at any depth.
func drop(g generator, fields map[string]any) {
	keys := slices.Sorted(maps.Keys(fields))
	if len(keys) == 0 {
		return
	}
	key := one(g, keys...)
	switch value := fields[key].(type) {
	case map[string]any:
		drop(g, value)
		return
	case []any:
		if len(value) > 0 {
			if element, ok := one(g, value...).(map[string]any); ok {
				drop(g, element)
				return
			}
		}
	}
	if key != "$patch" {
		delete(fields, key)
	}
}

// A template as a user writes it, and the same with what the API server fills in.
func TestDefaultsOfTemplatesAreUpstreams(t *testing.T) {
	g, same := generate(t), 0
	for range templates {
		set := statefulSet(g)
		older, err := newRevision(set, 1, nil)
		if err != nil {
			t.Fatal(err)
		}
		legacyscheme.Scheme.Default(set)
		proposed, err := newRevision(set, 2, nil)
		if err != nil {
			t.Fatal(err)
		}
		state, err := revisions.StatefulSet(set)
		if err != nil {
			t.Fatal(err)
		}
		want := setMatchesLatestExistingRevision(set, proposed, older, lru.New(10))
		if got := state.Same(older); got != want {
			t.Fatalf("ours says %t, upstream %t: was\n%s\nis\n%s", got, want, older.Data.Raw, state.Data)
		}
		if want {
			same++
		}
	}
	if same < templates/4 {
		t.Errorf("%d of %d templates ask for the same with their defaults", same, templates)
	}
}

func TestTheOrderOfRevisionsIsUpstreams(t *testing.T) {
	g := generate(t)
	for range templates {
		var list []*appsv1.ControllerRevision
		for range g.IntN(6) {
			list = append(list, &appsv1.ControllerRevision{
				ObjectMeta: metav1.ObjectMeta{Name: one(g, "a", "b", "c"), CreationTimestamp: metav1.Unix(g.Int64N(3), 0)}, Revision: g.Int64N(4),
			})
		}
		theirs := slices.Clone(list)
		revisions.Sort(list)
		history.SortControllerRevisions(theirs)
		if !apiequality.Semantic.DeepEqual(list, theirs) || revisions.Next(list) != nextRevision(theirs) {
			t.Fatalf("ours is %v, upstream's %v", list, theirs)
		}
	}
}

// The hash of ReplicaSets of Deployments.
func TestHashesOfTemplatesAreUpstreams(t *testing.T) {
	g := generate(t)
	for range templates {
		var template corev1.PodTemplateSpec
		fill(g, &template)
		collisions := collisionCount(g)
		if got, want := revisions.HashTemplate(&template, collisions), upstream.ComputeHash(&template, collisions); got != want {
			t.Fatalf("the hash is %s, want %s", got, want)
		}
	}
}
