// Copyright The Setpoint Authors.
// SPDX-License-Identifier: Apache-2.0

package resourceclaim

import (
	"fmt"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	corev1 "k8s.io/api/core/v1"
	eventsv1 "k8s.io/api/events/v1"
	resourcev1 "k8s.io/api/resource/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/validation"

	"github.com/setpoint-io/setpoint/client"
	"github.com/setpoint-io/setpoint/internal/managertest"
	"github.com/setpoint-io/setpoint/object"
	"github.com/setpoint-io/setpoint/setpointtest/fakeapi"
)

// cluster is a server in memory, inside of a bubble of synctest. No scheduler, kubelet or garbage
// collector runs.
type cluster struct {
	t                       *testing.T
	api                     *fakeapi.Server
	pods, claims, templates *fakeapi.Resource
	client                  *client.Client
}

func newCluster(t *testing.T) *cluster {
	t.Helper()
	api := fakeapi.New()
	c := &cluster{
		t: t, api: api,
		pods:      api.Serve(object.Resource{Version: "v1", Plural: "pods", Kind: "Pod", Namespaced: true}),
		claims:    api.Serve(object.Resource{Group: "resource.k8s.io", Version: "v1", Plural: "resourceclaims", Kind: "ResourceClaim", Namespaced: true}, fakeapi.WithStatus()),
		templates: api.Serve(object.Resource{Group: "resource.k8s.io", Version: "v1", Plural: "resourceclaimtemplates", Kind: "ResourceClaimTemplate", Namespaced: true}),
	}
	api.Serve(object.Resource{Group: "events.k8s.io", Version: "v1", Plural: "events", Kind: "Event", Namespaced: true})
	var err error
	if c.client, err = client.New(api.Config()); err != nil {
		t.Fatal(err)
	}
	return c
}

// start runs the controller.
func (c *cluster) start() *managertest.Process {
	c.t.Helper()
	p := managertest.Run(c.t, c.api.Config(), managertest.Making(New, Defaults()))
	synctest.Wait()
	return p
}

func pass(d time.Duration) {
	time.Sleep(d)
	synctest.Wait()
}

func check(t *testing.T, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}

func (c *cluster) addTemplate(name string) {
	c.t.Helper()
	check(c.t, c.templates.Add(template(name)))
}

func template(name string) *resourcev1.ResourceClaimTemplate {
	return &resourcev1.ResourceClaimTemplate{
		ObjectMeta: metav1.ObjectMeta{Namespace: "ns", Name: name},
		Spec: resourcev1.ResourceClaimTemplateSpec{
			ObjectMeta: metav1.ObjectMeta{Labels: map[string]string{"team": "a"}, Annotations: map[string]string{"note": "b"}},
			Spec: resourcev1.ResourceClaimSpec{Devices: resourcev1.DeviceClaim{Requests: []resourcev1.DeviceRequest{
				{Name: "gpu", Exactly: &resourcev1.ExactDeviceRequest{DeviceClassName: "gpu", AllocationMode: resourcev1.DeviceAllocationModeExactCount, Count: 1}},
			}}},
		},
	}
}

// pod returns a Pod with claims: "entry=claim", or "entry:template".
func pod(name, node string, claims ...string) *corev1.Pod {
	p := &corev1.Pod{ObjectMeta: metav1.ObjectMeta{Namespace: "ns", Name: name}, Spec: corev1.PodSpec{NodeName: node}}
	for _, text := range claims {
		if entry, claim, ok := strings.Cut(text, "="); ok {
			p.Spec.ResourceClaims = append(p.Spec.ResourceClaims, corev1.PodResourceClaim{Name: entry, ResourceClaimName: &claim})
			continue
		}
		entry, template, _ := strings.Cut(text, ":")
		p.Spec.ResourceClaims = append(p.Spec.ResourceClaims, corev1.PodResourceClaim{Name: entry, ResourceClaimTemplateName: &template})
	}
	return p
}

func (c *cluster) addPod(name, node string, claims ...string) *corev1.Pod {
	c.t.Helper()
	check(c.t, c.pods.Add(pod(name, node, claims...)))
	return c.pod(name)
}

func (c *cluster) pod(name string) *corev1.Pod {
	c.t.Helper()
	p, err := fakeapi.Read[*corev1.Pod](c.pods, in(name))
	check(c.t, err)
	return p
}

func (c *cluster) claim(name string) *resourcev1.ResourceClaim {
	c.t.Helper()
	claim, err := fakeapi.Read[*resourcev1.ResourceClaim](c.claims, in(name))
	check(c.t, err)
	return claim
}

func in(name string) object.Key { return object.Key{Namespace: "ns", Name: name} }

// allocate allocates a claim, as the scheduler does, and reserves it for Pods.
func (c *cluster) allocate(name string, pods ...*corev1.Pod) {
	c.t.Helper()
	check(c.t, fakeapi.Change(c.claims, in(name), func(claim *resourcev1.ResourceClaim) { allocate(claim, pods...) }))
	synctest.Wait()
}

func allocate(claim *resourcev1.ResourceClaim, pods ...*corev1.Pod) {
	claim.Finalizers = []string{resourcev1.Finalizer}
	claim.Status.Allocation = &resourcev1.AllocationResult{Devices: resourcev1.DeviceAllocationResult{
		Results: []resourcev1.DeviceRequestAllocationResult{{Request: "gpu", Driver: "d", Pool: "p", Device: "gpu-0"}},
	}}
	for _, p := range pods {
		claim.Status.ReservedFor = append(claim.Status.ReservedFor, resourcev1.ResourceClaimConsumerReference{Resource: "pods", Name: p.Name, UID: p.UID})
	}
}

// end sets the phase of a Pod.
func (c *cluster) end(name string, phase corev1.PodPhase) {
	c.t.Helper()
	check(c.t, fakeapi.Change(c.pods, in(name), func(p *corev1.Pod) { p.Status.Phase = phase }))
	synctest.Wait()
}

// only returns the single claim that there is.
func (c *cluster) only(when string) *resourcev1.ResourceClaim {
	c.t.Helper()
	claims, err := fakeapi.Objects[*resourcev1.ResourceClaim](c.claims)
	check(c.t, err)
	if len(claims) != 1 {
		c.t.Fatalf("%s there are the claims %q, want one", when, c.claims.Keys())
	}
	return claims[0]
}

func (c *cluster) wantClaims(when string, names ...string) {
	c.t.Helper()
	for i := range names {
		names[i] = "ns/" + names[i]
	}
	if got := c.claims.Keys(); !slices.Equal(got, names) {
		c.t.Errorf("%s there are the claims %q, want %q", when, got, names)
	}
}

// notes returns what the Events say.
func (c *cluster) notes() (all []string) {
	c.t.Helper()
	events, _, err := client.For[*eventsv1.Event](c.client).List(c.t.Context(), client.Selection{})
	check(c.t, err)
	for _, e := range events {
		all = append(all, e.Reason+": "+e.Note)
	}
	return all
}

// writes returns the requests that changed something, but for Events.
func (c *cluster) writes() (all []string) {
	for _, q := range c.api.Requests() {
		if q.Resource.Kind != "Event" && !slices.Contains([]string{"get", "list", "watch"}, q.Verb) {
			all = append(all, q.String())
		}
	}
	return all
}

func reserved(claim *resourcev1.ResourceClaim) (pods []string) {
	for _, c := range claim.Status.ReservedFor {
		pods = append(pods, c.Name)
	}
	return pods
}

func TestAPodGetsAClaimFromItsTemplateAndLosesItWhenItEnds(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c := newCluster(t)
		c.addTemplate("gpu")
		p := c.addPod("train", "", "dev:gpu")
		process := c.start()
		claim := c.only("at first")
		ref := metav1.GetControllerOf(claim)
		if !strings.HasPrefix(claim.Name, "train-dev-") || claim.GenerateName != "train-dev-" || claim.Labels["team"] != "a" ||
			claim.Annotations["note"] != "b" || claim.Annotations[resourcev1.PodResourceClaimAnnotation] != "dev" ||
			ref == nil || ref.UID != p.UID || ref.Kind != "Pod" || ref.APIVersion != "v1" || claim.Spec.Devices.Requests[0].Name != "gpu" {
			t.Errorf("the claim is %+v", claim)
		}
		if s := c.pod("train").Status.ResourceClaimStatuses; len(s) != 1 || s[0].Name != "dev" || *s[0].ResourceClaimName != claim.Name {
			t.Errorf("the status of the Pod names %v", s)
		}
		wantReason(t, process, "ns/train", "ClaimNotAllocated: the scheduler has not allocated the ResourceClaim "+claim.Name+", which requests devices of DeviceClass gpu")
		c.allocate(claim.Name, p)
		check(t, fakeapi.Change(c.pods, in("train"), func(p *corev1.Pod) { p.Spec.NodeName, p.Status.Phase = "n", corev1.PodRunning }))
		pass(time.Minute)
		if got := reserved(c.claim(claim.Name)); len(process.Reasons("ns/train")) > 0 || !slices.Equal(got, []string{"train"}) {
			t.Errorf("while the Pod runs the claim is reserved for %q, and the reasons are %q", got, process.Reasons("ns/train"))
		}
		before := len(c.writes())
		c.end("train", corev1.PodSucceeded)
		c.wantClaims("after the Pod")
		want := []string{"update status of " + claim.Name, "update of " + claim.Name, "delete of " + claim.Name}
		if got := c.writes()[before:]; len(got) != len(want) {
			t.Errorf("the writes are %q, want %q", got, want)
		}
		pass(time.Hour)
		c.wantClaims("an hour later")
	})
}

func wantReason(t *testing.T, p *managertest.Process, key, want string) {
	t.Helper()
	if got := p.Reasons(key); !slices.ContainsFunc(got, func(r string) bool { return strings.HasPrefix(r, want) }) {
		t.Errorf("the reasons about %s are %q, want %q", key, got, want)
	}
}

func TestATemplateThatIsMissingIsSaidAndWaitedFor(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c := newCluster(t)
		c.addTemplate("other")
		c.addPod("train", "", "dev:gpu", "too:other")
		process := c.start()
		if claim := c.only("without the template"); claim.Annotations[resourcev1.PodResourceClaimAnnotation] != "too" {
			t.Errorf("the claim is of %v", claim.Annotations)
		}
		wantReason(t, process, "ns/train", "TemplateMissing: the ResourceClaimTemplate gpu does not exist")
		pass(time.Hour)
		if notes := c.notes(); !slices.Equal(notes, []string{
			`FailedResourceClaimCreation: PodResourceClaim dev: resource claim template "gpu": resourceclaimtemplate.resource.k8s.io "gpu" not found`,
		}) {
			t.Errorf("the Events say %q", notes)
		}
		first := c.pod("train").Status.ResourceClaimStatuses
		c.addTemplate("gpu")
		pass(time.Second)
		if n := len(c.claims.Keys()); n != 2 {
			t.Errorf("with the template there are %d claims, want 2", n)
		}
		// The status keeps the claim of the first run.
		if s := c.pod("train").Status.ResourceClaimStatuses; len(s) != 2 || s[0].Name != "dev" || *s[1].ResourceClaimName != *first[0].ResourceClaimName {
			t.Errorf("the status of the Pod names %v, and before %v", s, first)
		}
	})
}

func TestAClaimWhoseNameDidNotReachTheStatusIsFound(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c := newCluster(t)
		c.addTemplate("gpu")
		c.addPod("train", "", "dev:gpu")
		refuse := true
		c.pods.Before(func(q *fakeapi.Request) *metav1.Status {
			if refuse && q.Verb == "patch" {
				return fakeapi.Forbidden("pods/status")
			}
			return nil
		})
		process := c.start()
		name := c.only("before the kill").Name
		process.Kill()
		refuse = false
		c.start()
		pass(time.Minute)
		if got := c.only("after the restart").Name; got != name || *c.pod("train").Status.ResourceClaimStatuses[0].ResourceClaimName != name {
			t.Errorf("the claim is %s, and was %s", got, name)
		}
	})
}

// An owner owns nothing in another namespace, whatever an object there says.
func TestAClaimOfAnotherNamespaceThatNamesThePodIsNotIts(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c := newCluster(t)
		c.addTemplate("gpu")
		pod := c.addPod("train", "", "dev:gpu")
		check(t, c.claims.Add(&resourcev1.ResourceClaim{ObjectMeta: metav1.ObjectMeta{
			Namespace: "theirs", Name: "trap", Annotations: map[string]string{resourcev1.PodResourceClaimAnnotation: "dev"},
			OwnerReferences: []metav1.OwnerReference{*metav1.NewControllerRef(pod, corev1.SchemeGroupVersion.WithKind("Pod"))},
		}}))
		c.start()
		pass(time.Minute)
		var named []string
		for _, s := range c.pod("train").Status.ResourceClaimStatuses {
			named = append(named, "ns/"+*s.ResourceClaimName)
		}
		if keys := c.claims.Keys(); len(named) != 1 || len(keys) != 2 || !slices.Contains(keys, named[0]) {
			t.Errorf("the Pod has the claims %q, want one that was made for it, of %q", named, keys)
		}
	})
}

func TestACreateWhoseAnswerWasLostIsNotRepeated(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c := newCluster(t)
		c.addTemplate("gpu")
		c.claims.LoseNext(1, "create")
		c.addPod("train", "", "dev:gpu")
		c.start()
		pass(5 * time.Minute)
		if claim := c.only("after the lost answer"); *c.pod("train").Status.ResourceClaimStatuses[0].ResourceClaimName != claim.Name {
			t.Errorf("the status of the Pod names %v", c.pod("train").Status.ResourceClaimStatuses)
		}
	})
}

func TestAClaimThatWasDeletedByMistakeIsMadeAgain(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c := newCluster(t)
		c.addTemplate("gpu")
		c.addPod("train", "", "dev:gpu")
		c.start()
		first := c.only("at first").Name
		c.claims.Remove(in(first))
		pass(time.Second)
		if claim := c.only("after the mistake"); claim.Name == first || *c.pod("train").Status.ResourceClaimStatuses[0].ResourceClaimName != claim.Name {
			t.Errorf("the claim is %s, the first was %s, and the status names %v", claim.Name, first, c.pod("train").Status.ResourceClaimStatuses)
		}
	})
}

func TestAPodThatIsBoundByOthersReservesItsClaims(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c := newCluster(t)
		check(t, c.claims.Add(&resourcev1.ResourceClaim{ObjectMeta: metav1.ObjectMeta{Namespace: "ns", Name: "shared"}}))
		c.allocate("shared")
		process := c.start()
		c.addPod("a", "n", "dev=missing", "too=shared")
		c.addPod("b", "n", "dev=shared")
		pass(time.Second)
		if got := reserved(c.claim("shared")); len(got) != 2 || !slices.Contains(got, "a") || !slices.Contains(got, "b") {
			t.Errorf("the claim is reserved for %q", got)
		}
		wantReason(t, process, "ns/a", "ClaimMissing: the ResourceClaim missing does not exist")
	})
}

// Upstream reserves the claim of such a Pod again, when it sees that it may be reserved.
func TestAPodThatHasEndedIsNeverReservedAgain(t *testing.T) {
	for name, end := range map[string]func(*corev1.Pod){
		"succeeded": func(p *corev1.Pod) { p.Status.Phase = corev1.PodSucceeded },
		"failed":    func(p *corev1.Pod) { p.Status.Phase = corev1.PodFailed },
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				c := newCluster(t)
				check(t, c.claims.Add(&resourcev1.ResourceClaim{ObjectMeta: metav1.ObjectMeta{Namespace: "ns", Name: "shared"}}))
				a, b := c.addPod("a", "n", "dev=shared"), c.addPod("b", "n", "dev=shared")
				c.allocate("shared", a, b)
				c.start()
				check(t, fakeapi.Change(c.pods, in("a"), end))
				pass(time.Hour)
				claim := c.claim("shared")
				if got := reserved(claim); !slices.Equal(got, []string{"b"}) || claim.Status.Allocation == nil {
					t.Errorf("the claim is reserved for %q", got)
				}
				if n := len(c.writes()); n != 1 {
					t.Errorf("there were %d writes, want 1: %q", n, c.writes())
				}
				c.end("b", corev1.PodSucceeded)
				claim = c.claim("shared")
				if claim.Status.Allocation != nil || len(claim.Finalizers) > 0 || len(reserved(claim)) > 0 {
					t.Errorf("after the last Pod the claim is %+v", claim)
				}
				pass(time.Hour)
				if n := len(c.writes()); n != 3 {
					t.Errorf("there were %d writes, want 3: %q", n, c.writes())
				}
			})
		})
	}
}

// The scheduler may reserve a claim for a Pod before the cache has seen the Pod.
func TestAPodThatTheCacheHasNotSeenKeepsItsReservation(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c := newCluster(t)
		check(t, c.claims.Add(&resourcev1.ResourceClaim{ObjectMeta: metav1.ObjectMeta{Namespace: "ns", Name: "shared"}}))
		c.start()
		c.pods.HoldWatches(true)
		p := c.addPod("a", "n", "dev=shared")
		c.allocate("shared", p)
		pass(time.Minute)
		if got := reserved(c.claim("shared")); !slices.Equal(got, []string{"a"}) {
			t.Errorf("the claim is reserved for %q", got)
		}
		c.pods.HoldWatches(false)
		pass(time.Second)
		c.pods.Remove(in("a"))
		pass(time.Second)
		if got := reserved(c.claim("shared")); len(got) > 0 {
			t.Errorf("after the Pod the claim is reserved for %q", got)
		}
	})
}

func TestClaimsThatWereDeletedOrLostTheirPodWithoutAControllerAreHandledAtTheStart(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c := newCluster(t)
		for _, name := range []string{"deleted", "used", "left"} {
			check(t, c.claims.Add(&resourcev1.ResourceClaim{ObjectMeta: metav1.ObjectMeta{Namespace: "ns", Name: name}}))
		}
		former := pod("former", "n")
		former.UID = "former"
		user := c.addPod("user", "n", "dev=used")
		c.allocate("deleted")
		c.allocate("used", user)
		c.allocate("left", former)
		for _, name := range []string{"deleted", "used"} {
			check(t, client.For[*resourcev1.ResourceClaim](c.client).Delete(t.Context(), in(name)))
		}
		process := c.start()
		pass(time.Second)
		c.wantClaims("after the start", "left", "used")
		if claim := c.claim("left"); claim.Status.Allocation != nil || len(reserved(claim)) > 0 {
			t.Errorf("the claim of a Pod that is gone is %+v", claim.Status)
		}
		wantReason(t, process, "ns/used", "ClaimInUse: the claim is being deleted, and is reserved for user")
		c.pods.Remove(in("user"))
		pass(time.Second)
		c.wantClaims("after the Pod", "left")
	})
}

func TestTheClaimOfExtendedResourcesGoesWithItsPod(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c := newCluster(t)
		p := c.addPod("train", "n")
		check(t, c.claims.Add(&resourcev1.ResourceClaim{ObjectMeta: metav1.ObjectMeta{
			Namespace: "ns", Name: "train-extended-resources-x", Annotations: map[string]string{resourcev1.ExtendedResourceClaimAnnotation: "true"},
			OwnerReferences: []metav1.OwnerReference{{APIVersion: "v1", Kind: "Pod", Name: p.Name, UID: p.UID, Controller: new(true)}},
		}}))
		c.allocate("train-extended-resources-x", p)
		c.start()
		check(t, fakeapi.Change(c.pods, in("train"), func(p *corev1.Pod) {
			p.Status.ExtendedResourceClaimStatus = &corev1.PodExtendedResourceClaimStatus{ResourceClaimName: "train-extended-resources-x"}
		}))
		pass(time.Minute)
		c.wantClaims("while the Pod runs", "train-extended-resources-x")
		c.end("train", corev1.PodFailed)
		c.wantClaims("after the Pod")
	})
}

func TestAReservationOfAnotherConsumerStays(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c := newCluster(t)
		check(t, c.claims.Add(&resourcev1.ResourceClaim{ObjectMeta: metav1.ObjectMeta{Namespace: "ns", Name: "shared"}}))
		c.allocate("shared")
		check(t, fakeapi.Change(c.claims, in("shared"), func(claim *resourcev1.ResourceClaim) {
			claim.Status.ReservedFor = []resourcev1.ResourceClaimConsumerReference{{APIGroup: "scheduling.k8s.io", Resource: "podgroups", Name: "g", UID: "g"}}
		}))
		c.start()
		pass(time.Hour)
		if got := reserved(c.claim("shared")); !slices.Equal(got, []string{"g"}) || len(c.writes()) > 0 {
			t.Errorf("the claim is reserved for %q, and the writes are %q", got, c.writes())
		}
	})
}

func TestAReservationThatChangesMeanwhileIsNotLost(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c := newCluster(t)
		check(t, c.claims.Add(&resourcev1.ResourceClaim{ObjectMeta: metav1.ObjectMeta{Namespace: "ns", Name: "shared"}}))
		a, b := c.addPod("a", "n", "dev=shared"), c.addPod("b", "n", "dev=shared")
		c.allocate("shared", a)
		c.start()
		pass(time.Second) // b reserves it too
		late := c.addPod("late", "", "dev=shared")
		interfered := false
		c.claims.Before(func(q *fakeapi.Request) *metav1.Status {
			if q.Verb == "update" && q.Subresource == "status" && !interfered {
				interfered = true
				err := fakeapi.Change(c.claims, in("shared"), func(claim *resourcev1.ResourceClaim) {
					claim.Status.ReservedFor = append(claim.Status.ReservedFor, resourcev1.ResourceClaimConsumerReference{Resource: "pods", Name: "late", UID: late.UID})
				})
				if err != nil {
					t.Error(err)
				}
			}
			return nil
		})
		c.pods.Remove(object.KeyOf(a))
		c.pods.Remove(object.KeyOf(b))
		pass(time.Minute)
		if claim := c.claim("shared"); !slices.Equal(reserved(claim), []string{"late"}) || claim.Status.Allocation == nil {
			t.Errorf("the claim is reserved for %q", reserved(claim))
		}
	})
}

func TestAPodOfAPodGroupIsSaidToGetNoClaims(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c := newCluster(t)
		c.addTemplate("gpu")
		p := pod("train", "", "dev:gpu")
		p.Spec.SchedulingGroup = &corev1.PodSchedulingGroup{PodGroupName: new("all")}
		check(t, c.pods.Add(p))
		process := c.start()
		c.wantClaims("for a Pod of a PodGroup")
		wantReason(t, process, "ns/train", "PodGroupClaims: the Pod belongs to the PodGroup all")
	})
}

func TestACreateThatIsRefusedIsSaidAndRepeated(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c := newCluster(t)
		c.addTemplate("gpu")
		c.addPod("train", "", "dev:gpu")
		c.claims.RefuseNext(2, "create", fakeapi.Forbidden("resourceclaims"))
		c.start()
		pass(time.Minute)
		c.only("after two refusals")
		if notes := c.notes(); len(notes) == 0 || !strings.HasPrefix(notes[0], "FailedResourceClaimCreation: PodResourceClaim dev: create ResourceClaim train-dev-") {
			t.Errorf("the Events say %q", notes)
		}
	})
}

func TestANamespaceThatTerminatesIsNoFailure(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c := newCluster(t)
		c.addTemplate("gpu")
		c.addPod("train", "", "dev:gpu")
		creates := 0
		c.claims.Before(func(q *fakeapi.Request) *metav1.Status {
			if q.Verb != "create" {
				return nil
			}
			creates++
			s := fakeapi.Forbidden("resourceclaims")
			s.Details = &metav1.StatusDetails{Causes: []metav1.StatusCause{{Type: corev1.NamespaceTerminatingCause}}}
			return s
		})
		c.start()
		pass(time.Hour)
		if notes := c.notes(); creates > 2 || len(notes) > 0 { // one for the Pod, and one for its template
			t.Errorf("there were %d creates, and the Events say %q", creates, notes)
		}
	})
}

func TestPodsThatWereDeletedAreRememberedUpToALimit(t *testing.T) {
	var g gone
	for i := range mostGone + 10 {
		g.add(types.UID(fmt.Sprint(i)))
		g.add(types.UID(fmt.Sprint(i)))
	}
	for i := range mostGone + 10 {
		if got := g.has(types.UID(fmt.Sprint(i))); got != (i >= 10) {
			t.Errorf("Pod %d is remembered: %t", i, got)
		}
	}
	if len(g.uids) != mostGone || len(g.ring) != mostGone {
		t.Errorf("it remembers %d, in a ring of %d", len(g.uids), len(g.ring))
	}
}

// The name of a claim is that of its Pod and the entry, cut in proportion, so that both can be read.
// Source: k8s.io/kubernetes/pkg/controller/resourceclaim, handleClaim.
func TestTheNameOfAClaimFitsAndIsValid(t *testing.T) {
	long := strings.Repeat("p", 120)
	for _, test := range []struct{ pod, entry, want string }{
		{"train", "gpu", "train-gpu-"},
		{strings.Repeat("p", 46), "gpu-entry", strings.Repeat("p", 46) + "-gpu-entry-"},
		{strings.Repeat("p", 47), "gpu-entry", strings.Repeat("p", 46) + "-gpu-entr"},
		{long, strings.Repeat("e", 60), long[:37] + "-" + strings.Repeat("e", 18)},
		{strings.Repeat("p", 45) + ".web", "gpu-entry", strings.Repeat("p", 45) + "-gpu-entr"}, // not "….-gpu"
	} {
		got := prefixFor(test.pod, test.entry)
		if got != test.want || len(got) > prefixMost {
			t.Errorf("the claim of Pod %s and entry %s is named %q, want %q", test.pod, test.entry, got, test.want)
		}
		if wrong := validation.IsDNS1123Subdomain(got + "abcde"); len(wrong) > 0 {
			t.Errorf("the API server refuses the name %sabcde: %q", got, wrong)
		}
	}
}
