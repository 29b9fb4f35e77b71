// Copyright The Setpoint Authors.
// SPDX-License-Identifier: Apache-2.0

package controllerruntime_test

import (
	"reflect"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/fields"
	"k8s.io/apimachinery/pkg/runtime"
	toolscache "k8s.io/client-go/tools/cache"
	crcache "sigs.k8s.io/controller-runtime/pkg/cache"
	crclient "sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/setpoint-io/setpoint/adapters/controllerruntime"
)

// An option that a new version of controller-runtime adds must not be ignored in silence.
func TestTheOptionsOfControllerRuntimeAreThoseThatTheCacheKnows(t *testing.T) {
	for typ, known := range map[reflect.Type]string{
		reflect.TypeFor[crcache.Options](): "ByObject DefaultEnableWatchBookmarks DefaultFieldSelector DefaultLabelSelector DefaultNamespaces " +
			"DefaultTransform DefaultUnsafeDisableDeepCopy DefaultWatchErrorHandler HTTPClient Mapper NewInformer ReaderFailOnMissingInformer Scheme SyncPeriod",
		reflect.TypeFor[crcache.ByObject]():           "EnableWatchBookmarks Field Label Namespaces SyncPeriod Transform UnsafeDisableDeepCopy",
		reflect.TypeFor[crcache.Config]():             "EnableWatchBookmarks FieldSelector LabelSelector SyncPeriod Transform UnsafeDisableDeepCopy",
		reflect.TypeFor[crcache.InformerGetOptions](): "BlockUntilSynced",
	} {
		var has []string
		for _, field := range reflect.VisibleFields(typ) {
			if field.IsExported() && !field.Anonymous {
				has = append(has, field.Name)
			}
		}
		slices.Sort(has)
		if got := strings.Join(has, " "); got != known {
			t.Errorf("%s has the fields\n%s\nand the cache knows\n%s", typ, got, known)
		}
	}
}

func TestSettingsOfAKindWinOverThoseOfTheCache(t *testing.T) {
	yes, no := true, false
	minute, hour := time.Minute, time.Hour
	options := crcache.Options{
		SyncPeriod: &hour, DefaultUnsafeDisableDeepCopy: &no, DefaultEnableWatchBookmarks: &yes,
		DefaultFieldSelector: fields.OneTermEqualSelector("metadata.name", "of-the-cache"),
		ByObject: map[crclient.Object]crcache.ByObject{&corev1.Pod{}: {
			SyncPeriod: &minute, UnsafeDisableDeepCopy: &yes, EnableWatchBookmarks: &no,
			Field: fields.OneTermEqualSelector("metadata.name", "a"),
		}},
	}
	inWorld(t, crcache.Options{}, func(t *testing.T, w *world) {
		options.Mapper = w.mapper
		var err error
		if w.cache, err = controllerruntime.NewCache(w.api.Config(), options); err != nil {
			t.Fatal(err)
		}
		w.pod(t, "team-a", "a", labelled("app", "web"))
		w.pod(t, "team-a", "b")
		for _, name := range []string{"of-the-cache", "other"} {
			if err := w.api.Of(nodes).Put(&corev1.Node{ObjectMeta: metav1.ObjectMeta{Name: name, Labels: map[string]string{"a": "b"}}}); err != nil {
				t.Fatal(err)
			}
		}
		defer w.start(t)()
		resyncs := map[string]int{}
		for kind, sample := range map[string]crclient.Object{"pods": &corev1.Pod{}, "nodes": &corev1.Node{}} {
			informer, err := w.cache.GetInformer(t.Context(), sample)
			if err != nil {
				t.Fatal(err)
			}
			if _, err := informer.AddEventHandler(toolscache.ResourceEventHandlerFuncs{UpdateFunc: func(_, _ any) { resyncs[kind]++ }}); err != nil {
				t.Fatal(err)
			}
		}
		time.Sleep(30 * time.Minute)
		synctest.Wait()
		// The periods of informers differ by up to a tenth.
		if resyncs["pods"] < 27 || resyncs["pods"] > 33 || resyncs["nodes"] != 0 {
			t.Errorf("in half an hour there were resyncs: %v", resyncs)
		}
		var pods corev1.PodList
		var nodes corev1.NodeList
		for _, list := range []crclient.ObjectList{&pods, &nodes} {
			if err := w.cache.List(t.Context(), list); err != nil {
				t.Fatal(err)
			}
		}
		if len(pods.Items) != 1 || pods.Items[0].Name != "a" || len(nodes.Items) != 1 || nodes.Items[0].Name != "of-the-cache" {
			t.Errorf("the cache has %d Pods and %d Nodes", len(pods.Items), len(nodes.Items))
		}
		for i, shared := range []bool{true, false} {
			sample := []func() crclient.Object{func() crclient.Object { return &corev1.Pod{} }, func() crclient.Object { return &corev1.Node{} }}[i]
			key := []crclient.ObjectKey{{Namespace: "team-a", Name: "a"}, {Name: "of-the-cache"}}[i]
			one, two := sample(), sample()
			for _, o := range []crclient.Object{one, two} {
				if err := w.cache.Get(t.Context(), key, o); err != nil {
					t.Fatal(err)
				}
			}
			if labelsOf(one) == labelsOf(two) != shared {
				t.Errorf("two readers of a %T share its content: %t, want %t", one, !shared, shared)
			}
		}
		bookmarks := map[string]string{}
		for _, r := range w.api.Requests() {
			if r.Verb == "watch" {
				bookmarks[r.HTTP.URL.Path] = r.HTTP.URL.Query().Get("allowWatchBookmarks")
			}
		}
		if bookmarks["/api/v1/pods"] != "" || bookmarks["/api/v1/nodes"] != "true" {
			t.Errorf("watches have bookmarks: %v", bookmarks)
		}
	})
}

// labelsOf is the address of the labels, which copies do not share.
func labelsOf(o crclient.Object) uintptr {
	return reflect.ValueOf(o.GetLabels()).Pointer()
}

// gizmoList has objects of another type than its kind.
type gizmoList struct {
	metav1.TypeMeta `json:",inline"`
	metav1.ListMeta `json:"metadata"`

	Items []corev1.Node `json:"items"`
}

func (g *gizmoList) DeepCopyObject() runtime.Object { c := *g; return &c }

func TestAListOfAnotherTypeThanItsKindIsAnError(t *testing.T) {
	scheme := schemeOfGizmos()
	scheme.AddKnownTypeWithName(gizmos.GroupVersionKind().GroupVersion().WithKind("GizmoList"), &gizmoList{})
	inWorld(t, crcache.Options{Scheme: scheme}, func(t *testing.T, w *world) {
		w.gizmo(t, int64(3))
		defer w.start(t)()
		if err := w.cache.List(t.Context(), &gizmoList{}); err == nil || !strings.Contains(err.Error(), "gizmo") {
			t.Errorf("got %v", err)
		}
	})
}
