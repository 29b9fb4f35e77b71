// Copyright The Setpoint Authors.
// SPDX-License-Identifier: Apache-2.0

package owned_test

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"slices"
	"strings"
	"sync"
	"testing"
	"testing/synctest"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/rest"

	"github.com/setpoint-io/setpoint/cache"
	"github.com/setpoint-io/setpoint/client"
	"github.com/setpoint-io/setpoint/controller/owned"
	"github.com/setpoint-io/setpoint/object"
	"github.com/setpoint-io/setpoint/setpointtest/fakeapi"
)

var webs = labels.SelectorFromSet(labels.Set{"app": "web"})

// shop returns a ReplicaSet, whose UID is its name.
func shop(name string, change ...func(*appsv1.ReplicaSet)) *appsv1.ReplicaSet {
	set := &appsv1.ReplicaSet{ObjectMeta: metav1.ObjectMeta{Namespace: "ns", Name: name, UID: types.UID(name)}}
	for _, f := range change {
		f(set)
	}
	return set
}

// notary answers patches, and writes down what they do to references. It stands in for a
// server because each test names its answer, whatever the Pod is.
type notary struct {
	mu     sync.Mutex
	did    []string
	answer map[string]int // by the name of the Pod; 200 without one
}

func (n *notary) RoundTrip(r *http.Request) (*http.Response, error) {
	body, err := io.ReadAll(r.Body)
	if err != nil {
		return nil, err
	}
	var change struct {
		Metadata struct {
			UID             string
			OwnerReferences []struct {
				Patch      string `json:"$patch"`
				UID        string
				Controller bool
			}
		}
	}
	if err := json.Unmarshal(body, &change); err != nil {
		return nil, err
	}
	if r.Method != http.MethodPatch || len(change.Metadata.OwnerReferences) != 1 || r.Header.Get("Content-Type") != string(types.StrategicMergePatchType) {
		return nil, fmt.Errorf("%s %s is no change of one reference: %s", r.Method, r.URL.Path, body)
	}
	name := r.URL.Path[strings.LastIndexByte(r.URL.Path, '/')+1:]
	ref := change.Metadata.OwnerReferences[0]
	n.mu.Lock()
	defer n.mu.Unlock()
	n.did = append(n.did, strings.TrimSpace(fmt.Sprintf("%s with UID %s: %s %s", name, change.Metadata.UID, ref.Patch, ref.UID)))
	code := http.StatusOK
	answer := any(&corev1.Pod{TypeMeta: metav1.TypeMeta{APIVersion: "v1", Kind: "Pod"}, ObjectMeta: metav1.ObjectMeta{Namespace: "ns", Name: name}})
	if c, ok := n.answer[name]; ok {
		reasons := map[int]metav1.StatusReason{404: metav1.StatusReasonNotFound, 409: metav1.StatusReasonConflict, 422: metav1.StatusReasonInvalid}
		code, answer = c, &metav1.Status{TypeMeta: metav1.TypeMeta{APIVersion: "v1", Kind: "Status"}, Status: metav1.StatusFailure, Code: int32(c), Reason: reasons[c], Message: fmt.Sprint("it is ", c), Details: &metav1.StatusDetails{Name: name, Kind: "pods"}}
	}
	text, err := json.Marshal(answer)
	if err != nil {
		return nil, err
	}
	return &http.Response{StatusCode: code, Header: http.Header{"Content-Type": {"application/json"}}, Body: io.NopCloser(strings.NewReader(string(text))), Request: r}, nil
}

var (
	podsResource = object.Resource{Version: "v1", Plural: "pods", Kind: "Pod", Namespaced: true}
	podKey       = object.Key{Namespace: "ns", Name: "p"}
)

// inMemory runs a test with a server of Pods and their informer, which runs.
func inMemory(t *testing.T, test func(*testing.T, *fakeapi.Resource, cache.SharedInformer[*corev1.Pod])) {
	t.Helper()
	synctest.Test(t, func(t *testing.T) {
		server := fakeapi.New().Serve(podsResource)
		c, err := client.New(&rest.Config{Host: "http://in-memory", Transport: server})
		if err != nil {
			t.Fatal(err)
		}
		factory := cache.NewFactory(c, nil)
		pods := cache.Informer[*corev1.Pod](factory)
		ctx, cancel := context.WithCancel(t.Context())
		ended := make(chan error, 1)
		go func() { ended <- factory.Run(ctx) }()
		synctest.Wait()
		defer func() {
			cancel()
			if err := <-ended; err != nil {
				t.Error(err)
			}
		}()
		test(t, server, pods)
	})
}

func TestWhatAnOwnerClaims(t *testing.T) {
	managedBy := func(uid types.UID) func(*corev1.Pod) {
		return func(pod *corev1.Pod) {
			pod.OwnerReferences = []metav1.OwnerReference{owned.By(shop(string(uid)), appsv1.SchemeGroupVersion.WithKind("ReplicaSet"))}
		}
	}
	unmanaged := func(pod *corev1.Pod) { // by somebody who does not manage it
		pod.OwnerReferences = []metav1.OwnerReference{{APIVersion: "v1", Kind: "ConfigMap", Name: "c", UID: "c"}}
	}
	other := func(pod *corev1.Pod) { pod.Labels = map[string]string{"app": "db"} }
	going := func(pod *corev1.Pod) {
		pod.DeletionTimestamp, pod.Finalizers = &metav1.Time{}, []string{"example.com/wait"}
		*pod.DeletionTimestamp = metav1.Unix(1, 0)
	}
	goes := func(set *appsv1.ReplicaSet) { set.DeletionTimestamp = new(metav1.Unix(1, 0)) }
	elsewhere := func(set *appsv1.ReplicaSet) { set.Namespace = "elsewhere" }
	for _, c := range []struct {
		name    string
		pod     []func(*corev1.Pod)
		owner   *appsv1.ReplicaSet
		live    *appsv1.ReplicaSet // what the server says; the owner without one
		liveErr error
		answer  int
		also    func(object.Meta) bool

		claimed bool
		did     string
		err     string
		gone    bool // the error is ErrOwnerGone
	}{
		{name: "its own that matches", pod: []func(*corev1.Pod){managedBy("mine")}, claimed: true},
		{name: "somebody else's that matches", pod: []func(*corev1.Pod){managedBy("yours")}},
		{name: "its own that matches no longer", pod: []func(*corev1.Pod){managedBy("mine"), other}, did: "p with UID uid-2: delete mine"},
		{name: "its own that matches no longer, while it is being deleted", owner: shop("mine", goes), pod: []func(*corev1.Pod){managedBy("mine"), other}},
		{name: "its own that matches no longer and went meanwhile", pod: []func(*corev1.Pod){managedBy("mine"), other}, answer: 404, did: "p with UID uid-2: delete mine"},
		{name: "its own that matches no longer and has another UID", pod: []func(*corev1.Pod){managedBy("mine"), other}, answer: 422, did: "p with UID uid-2: delete mine"},
		{name: "its own that cannot be released", pod: []func(*corev1.Pod){managedBy("mine"), other}, answer: 409, did: "p with UID uid-2: delete mine", err: "releasing ns/p"},

		{name: "nobody's, and the owner has no namespace", owner: shop("mine", func(set *appsv1.ReplicaSet) { set.Namespace = "" }), claimed: true, did: "p with UID uid-2:  mine"},
		{name: "its own whose name does not match", pod: []func(*corev1.Pod){managedBy("mine")}, also: func(m object.Meta) bool { return m.Name != "p" }, did: "p with UID uid-2: delete mine"},
		{name: "nobody's whose name matches too", also: func(m object.Meta) bool { return m.Name == "p" }, claimed: true, did: "p with UID uid-2:  mine"},
		{name: "nobody's whose name does not match", also: func(m object.Meta) bool { return m.Name != "p" }},
		{name: "one of another namespace that names it", owner: shop("mine", elsewhere), pod: []func(*corev1.Pod){managedBy("mine")}},
		{name: "one of another namespace that names it and does not match", owner: shop("mine", elsewhere), pod: []func(*corev1.Pod){managedBy("mine"), other}},

		{name: "nobody's that matches", claimed: true, did: "p with UID uid-2:  mine"},
		{name: "one that somebody owns and nobody manages", pod: []func(*corev1.Pod){unmanaged}, claimed: true, did: "p with UID uid-2:  mine"},
		{name: "nobody's that does not match", pod: []func(*corev1.Pod){other}},
		{name: "nobody's that is being deleted", pod: []func(*corev1.Pod){going}},
		{name: "nobody's, while the owner is being deleted", owner: shop("mine", goes)},
		{name: "nobody's in another namespace", owner: shop("mine", elsewhere)},
		{name: "nobody's that went meanwhile", answer: 404, did: "p with UID uid-2:  mine"},
		{name: "nobody's that has another UID", answer: 409, did: "p with UID uid-2:  mine", err: "adopting ns/p"},
		{name: "nobody's, and the owner is another one by now", live: shop("another"), err: "another one has its name", gone: true},
		{name: "nobody's, and the owner is being deleted by now", live: shop("mine", goes), err: "ReplicaSet ns/mine: the owner is being deleted", gone: true},
		{name: "nobody's, and the owner is not there any more", liveErr: apierrors.NewNotFound(appsv1.Resource("replicasets"), "web"), err: "gone", gone: true},
		{name: "nobody's, and the server does not know the kind of the owner", liveErr: apierrors.NewGenericServerResponse(404, "get", appsv1.Resource("replicasets"), "web", "404 page not found", 0, true), err: "could not find the requested resource"},
		{name: "nobody's, and the server does not say", liveErr: errors.New("no answer"), err: "no answer"},
	} {
		t.Run(c.name, func(t *testing.T) {
			inMemory(t, func(t *testing.T, server *fakeapi.Resource, pods cache.SharedInformer[*corev1.Pod]) {
				pod := &corev1.Pod{ObjectMeta: metav1.ObjectMeta{Namespace: "ns", Name: "p", Labels: map[string]string{"app": "web"}}}
				for _, f := range c.pod {
					f(pod)
				}
				if err := server.Add(pod); err != nil {
					t.Fatal(err)
				}
				synctest.Wait()
				n := &notary{answer: map[string]int{}}
				if c.answer != 0 {
					n.answer["p"] = c.answer
				}
				cl, err := client.New(&rest.Config{Host: "http://in-memory", Transport: n})
				if err != nil {
					t.Fatal(err)
				}
				owner := c.owner
				if owner == nil {
					owner = shop("mine")
				}
				asked := 0
				claim := owned.Claim[*corev1.Pod]{
					Server: client.For[*corev1.Pod](cl), Owner: owner, Kind: appsv1.SchemeGroupVersion.WithKind("ReplicaSet"), Selector: webs, Also: c.also,
					Live: func(context.Context) (object.Object, error) {
						asked++
						if c.live != nil {
							return c.live, c.liveErr
						}
						return owner, c.liveErr
					},
				}
				// Twice the same items: the owner is asked for once.
				items := pods.Snapshot().Namespace("ns")
				claimed, err := claim.Of(t.Context(), items)
				if got := len(claimed) == 1 && claimed[0].Key() == podKey; got != c.claimed || len(claimed) > 1 {
					t.Errorf("claimed %d, want it claimed: %t", len(claimed), c.claimed)
				}
				if (err == nil) != (c.err == "") || err != nil && !strings.Contains(err.Error(), c.err) {
					t.Errorf("the error is %v, want one that says %q", err, c.err)
				}
				if errors.Is(err, owned.ErrOwnerGone) != c.gone {
					t.Errorf("the error is %v; that the owner is gone: %t", err, c.gone)
				}
				var want []string
				if c.did != "" {
					want = []string{strings.ReplaceAll(c.did, "uid-2", string(server.UID(podKey)))}
				}
				if !slices.Equal(n.did, want) {
					t.Errorf("it did %q, want %q", n.did, want)
				}
				if _, err := claim.Of(t.Context(), items); (err == nil) != (c.err == "") {
					t.Errorf("the second time the error is %v", err)
				}
				if asked > 1 {
					t.Errorf("the server was asked %d times for the owner", asked)
				}
			})
		})
	}
}

func TestOwnerReferenceMarksTheManagingController(t *testing.T) {
	owner := &corev1.Pod{ObjectMeta: metav1.ObjectMeta{Name: "o", UID: "u"}}
	ref := owned.By(owner, schema.GroupVersionKind{Version: "v1", Kind: "Pod"})
	if ref.Controller == nil || !*ref.Controller || ref.BlockOwnerDeletion == nil || !*ref.BlockOwnerDeletion || ref.UID != "u" || ref.APIVersion != "v1" {
		t.Errorf("%+v", ref)
	}
}

// An informer of some objects only cannot see a write to the others. That must not
// hold the key for ever, whether the answer came or was lost.
