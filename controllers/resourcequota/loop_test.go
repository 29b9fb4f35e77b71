// Copyright The Setpoint Authors.
// SPDX-License-Identifier: Apache-2.0

package resourcequota

import (
	"fmt"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	corev1 "k8s.io/api/core/v1"
	eventsv1 "k8s.io/api/events/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/setpoint-io/setpoint/client"
	"github.com/setpoint-io/setpoint/controller"
	"github.com/setpoint-io/setpoint/controller/accounting"
	"github.com/setpoint-io/setpoint/internal/managertest"
	"github.com/setpoint-io/setpoint/object"
	"github.com/setpoint-io/setpoint/setpointtest/fakeapi"
)

var widget = object.Resource{Group: "example.com", Version: "v1", Plural: "widgets", Kind: "Widget", Namespaced: true}

// cluster is a server with Pods and quotas, inside of a bubble of synctest. It has no admission:
// a test raises status.used itself, as admission does.
type cluster struct {
	t                        *testing.T
	api                      *fakeapi.Server
	quotas, pods, configMaps *fakeapi.Resource
	client                   *client.Client
}

func newCluster(t *testing.T) *cluster {
	t.Helper()
	api := fakeapi.New()
	c := &cluster{
		t: t, api: api,
		quotas:     api.Serve(kind, fakeapi.WithStatus()),
		pods:       api.Serve(object.Resource{Version: "v1", Plural: "pods", Kind: "Pod", Namespaced: true}, fakeapi.WithStatus()),
		configMaps: api.Serve(object.Resource{Version: "v1", Plural: "configmaps", Kind: "ConfigMap", Namespaced: true}),
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

func hard(pairs ...string) corev1.ResourceList {
	list := corev1.ResourceList{}
	for _, pair := range pairs {
		name, amount, _ := strings.Cut(pair, "=")
		list[corev1.ResourceName(name)] = resource.MustParse(amount)
	}
	return list
}

// quota creates a quota in the namespace shop.
func (c *cluster) quota(name string, limits ...string) {
	c.t.Helper()
	q := &corev1.ResourceQuota{ObjectMeta: metav1.ObjectMeta{Namespace: "shop", Name: name}, Spec: corev1.ResourceQuotaSpec{Hard: hard(limits...)}}
	if _, err := client.For[*corev1.ResourceQuota](c.client).Create(c.t.Context(), q); err != nil {
		c.t.Fatal(err)
	}
}

// pod creates a Pod that requests CPU.
func (c *cluster) pod(name, cpu string) {
	c.t.Helper()
	p := &corev1.Pod{ObjectMeta: metav1.ObjectMeta{Namespace: "shop", Name: name}}
	p.Spec.Containers = []corev1.Container{{Name: "web", Resources: corev1.ResourceRequirements{Requests: hard("cpu=" + cpu)}}}
	if _, err := client.For[*corev1.Pod](c.client).Create(c.t.Context(), p); err != nil {
		c.t.Fatal(err)
	}
}

// admitted creates a Pod after status.used was raised for it, as admission does.
func (c *cluster) admitted(quota, name, cpu string) {
	c.t.Helper()
	c.raise(quota, "pods=1", "requests.cpu="+cpu)
	c.pod(name, cpu)
}

// raise adds to status.used.
func (c *cluster) raise(quota string, amounts ...string) {
	c.t.Helper()
	err := fakeapi.Change(c.quotas, key(quota), func(q *corev1.ResourceQuota) {
		for name, q2 := range hard(amounts...) {
			if sum, there := q.Status.Used[name]; there {
				sum.Add(q2)
				q.Status.Used[name] = sum
			}
		}
	})
	if err != nil {
		c.t.Fatal(err)
	}
}

func (c *cluster) delete(names ...string) {
	c.t.Helper()
	for _, name := range names {
		if err := client.For[*corev1.Pod](c.client).Delete(c.t.Context(), key(name), client.GracePeriod(0)); err != nil {
			c.t.Fatal(err)
		}
	}
}

func key(name string) object.Key { return object.Key{Namespace: "shop", Name: name} }

// used returns status.used of a quota, and status.hard if it is another one than spec.hard.
func (c *cluster) used(name string) string {
	c.t.Helper()
	q, err := fakeapi.Read[*corev1.ResourceQuota](c.quotas, key(name))
	if err != nil {
		c.t.Fatal(err)
	}
	if !same(q.Spec.Hard, q.Status.Hard) {
		return fmt.Sprintf("%s, but status.hard is %s", text(q.Status.Used), text(q.Status.Hard))
	}
	return text(q.Status.Used)
}

func (c *cluster) want(when, quota, used string) {
	c.t.Helper()
	if got := c.used(quota); got != used {
		c.t.Fatalf("%s status.used is %q, want %q", when, got, used)
	}
}

// notes returns what the Events of a reason say.
func (c *cluster) notes(reason string) (all []string) {
	c.t.Helper()
	events, _, err := client.For[*eventsv1.Event](c.client).List(c.t.Context(), client.Selection{})
	if err != nil {
		c.t.Fatal(err)
	}
	for _, e := range events {
		if e.Reason == reason {
			all = append(all, e.Note)
		}
	}
	return all
}

// writes returns how many times the status of a quota was written.
func (c *cluster) writes() (n int) {
	for _, q := range c.quotas.Requests() {
		if q.Verb == "update" {
			n++
		}
	}
	return n
}

// pass lets time pass, and the controller does what is due.
func pass(d time.Duration) {
	time.Sleep(d)
	synctest.Wait()
}

func TestAQuotaIsCountedAndFollowsItsObjects(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c := newCluster(t)
		c.pod("before", "500m")
		c.start()
		c.quota("small", "pods=10", "requests.cpu=4", "count/configmaps=5", "configmaps=5")
		pass(soon)
		c.want("at first", "small", "configmaps=0 count/configmaps=0 pods=1 requests.cpu=500m")
		c.admitted("small", "web", "1500m")
		pass(time.Minute)
		c.want("with a Pod more", "small", "configmaps=0 count/configmaps=0 pods=2 requests.cpu=2")
		c.delete("web", "before")
		pass(pace)
		c.want("without Pods", "small", "configmaps=0 count/configmaps=0 pods=0 requests.cpu=0")
	})
}

// Admission has raised status.used, and the object is not stored yet: another client must not get
// what the first one was promised.
func TestWhatIsInFlightIsNotTakenBack(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c := newCluster(t)
		p := c.start()
		c.quota("small", "pods=10", "requests.cpu=4")
		pass(soon)
		c.admitted("small", "web", "1")
		c.raise("small", "pods=1", "requests.cpu=500m")
		pass(2 * pace)
		c.delete("web")
		pass(2 * pace)
		c.want("while a creation is under way", "small", "pods=1 requests.cpu=500m")
		want := []string{"MayBeInFlight: status.used has pods=1 requests.cpu=500m more than the objects count for: a creation may be under way, or one has failed" +
			" (until the objects appear, or it is certain that they do not)"}
		if reasons := p.Reasons("shop/small"); !slices.Equal(reasons, want) {
			t.Errorf("while a creation is under way the reasons are %q, want %q", reasons, want)
		}
		c.pod("late", "500m")
		pass(time.Hour)
		c.want("after it", "small", "pods=1 requests.cpu=500m")
		if reasons := p.Reasons("shop/small"); len(reasons) > 0 {
			t.Errorf("after it the reasons are %q, want none", reasons)
		}
	})
}

func TestACreationThatFailsAfterAdmissionIsGivenBack(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c := newCluster(t)
		c.start()
		c.quota("small", "pods=10", "requests.cpu=4")
		pass(soon)
		c.raise("small", "pods=1", "requests.cpu=500m")
		pass(inFlight)
		c.want("while it may be under way", "small", "pods=1 requests.cpu=500m")
		pass(5 * time.Second)
		c.want("when it has failed for certain", "small", "pods=0 requests.cpu=0")
	})
}

// The watch of Pods hangs: the controller does not know the Pod, and must not take its charge back.
func TestAStaleCacheLowersNothing(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c := newCluster(t)
		c.start()
		c.quota("small", "pods=10")
		pass(soon)
		c.pods.HoldWatches(true)
		c.admitted("small", "web", "1")
		pass(2 * inFlight)
		c.want("while the watch hangs", "small", "pods=1")
		c.pods.HoldWatches(false)
		pass(inFlight)
		c.want("when it goes on", "small", "pods=1")
	})
}

// The first status is one write, also if the kinds are listed one after the other. A kind that takes
// long delays the others for a second.
func TestTheFirstStatusIsOneWrite(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c := newCluster(t)
		c.configMaps.Delay(func(*fakeapi.Request) time.Duration { return pace / 2 })
		c.quota("small", "pods=10", "configmaps=10")
		c.start()
		pass(time.Minute)
		c.want("in the end", "small", "configmaps=0 pods=0")
		if n := c.writes(); n != 1 {
			t.Errorf("the first status is %d writes, want 1", n)
		}
		c.quota("none", "unknown=10")
		pass(time.Hour)
		if n := c.writes(); n != 2 {
			t.Errorf("a quota of which nothing can be counted is written %d times, want 1", n-1)
		}
	})
}

// No event says that the grace period of a Pod is over.
func TestAPodIsFreeWhenItsGracePeriodIsOver(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c := newCluster(t)
		c.start()
		c.quota("small", "pods=10", "count/pods=10")
		pass(soon)
		c.pod("stuck", "1")
		pass(pace)
		now, grace := metav1.Now(), int64(30)
		if err := fakeapi.Change(c.pods, key("stuck"), func(p *corev1.Pod) { p.DeletionTimestamp, p.DeletionGracePeriodSeconds = &now, &grace }); err != nil {
			t.Fatal(err)
		}
		pass(29 * time.Second)
		c.want("within the grace period", "small", "count/pods=1 pods=1")
		pass(2 * time.Second)
		c.want("after it", "small", "count/pods=1 pods=0")
	})
}

func TestABurstIsOneWriteAndConflictsAreNoLoss(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c := newCluster(t)
		c.start()
		c.quota("small", "pods=100", "requests.cpu=100")
		pass(pace)
		var names []string
		for i := range 50 {
			names = append(names, fmt.Sprint("web-", i))
			c.admitted("small", names[i], "1")
		}
		pass(time.Minute)
		before := c.writes()
		c.delete(names[:40]...)
		pass(pace)
		c.want("after 40 deletions", "small", "pods=10 requests.cpu=10")
		if n := c.writes() - before; n > 2 {
			t.Errorf("40 deletions at once are %d writes, want 2 at most", n)
		}
		// Admission writes in the middle of the write of the controller.
		raised := false
		c.quotas.Before(func(q *fakeapi.Request) *metav1.Status {
			if q.Verb == "update" && !raised {
				raised = true
				c.admitted("small", "new", "1")
			}
			return nil
		})
		c.delete(names[40])
		pass(time.Minute)
		if c.want("after a conflict", "small", "pods=10 requests.cpu=10"); !raised {
			t.Error("there was no conflict")
		}
	})
}

// While a quota is full, the API server refuses what would replace a Pod that has gone. So each deletion is
// written at once, also those that follow one another within a second. The status of a quota that has plenty left
// can wait.
func TestADeletionInAFullQuotaIsWrittenAtOnce(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c := newCluster(t)
		c.start()
		c.quota("full", "pods=3", "requests.cpu=100")
		c.quota("wide", "pods=100")
		pass(pace)
		for i := range 3 {
			c.raise("wide", "pods=1")
			c.admitted("full", fmt.Sprint("web-", i), "1")
		}
		pass(time.Minute)
		for i := range 10 {
			c.delete(fmt.Sprint("web-", i))
			pass(urgent)
			c.want(fmt.Sprintf("after deletion %d", i+1), "full", "pods=2 requests.cpu=2")
			c.raise("wide", "pods=1")
			c.admitted("full", fmt.Sprint("web-", i+3), "1")
			pass(urgent)
		}
		// The first deletion is written after 100 ms, with the two after it. The other seven wait.
		c.want("that has plenty left", "wide", "pods=10")
		pass(pace)
		c.want("a second later", "wide", "pods=3")
	})
}

func TestAWriteWithoutAnswerIsNotMadeTwice(t *testing.T) {
	for _, carriedOut := range []bool{true, false} {
		synctest.Test(t, func(t *testing.T) {
			c := newCluster(t)
			c.start()
			c.quota("small", "pods=10")
			pass(pace)
			c.admitted("small", "a", "1")
			c.admitted("small", "b", "1")
			pass(time.Minute)
			if carriedOut {
				c.quotas.LoseNext(1, "update")
			} else {
				c.quotas.RefuseNext(1, "update", fakeapi.Unavailable(1))
			}
			c.delete("a")
			pass(2 * time.Minute)
			c.want("after an answer that was lost", "small", "pods=1")
		})
	}
}

func TestARestartFindsWhatChangedMeanwhile(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c := newCluster(t)
		p := c.start()
		c.quota("small", "pods=10")
		pass(pace)
		c.admitted("small", "a", "1")
		c.admitted("small", "b", "1")
		pass(pace)
		p.Stop()
		c.delete("a")
		pass(time.Hour)
		c.start()
		pass(inFlight + 5*time.Second)
		c.want("after the restart", "small", "pods=1")
	})
}

// One kind cannot be listed. The others of the same quota, and other quotas, are counted.
func TestAKindThatCannotBeListedDelaysNoOther(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c := newCluster(t)
		widgets := c.api.Serve(widget)
		widgets.Before(func(*fakeapi.Request) *metav1.Status { return fakeapi.Forbidden("widgets") })
		c.start()
		c.quota("mixed", "pods=10", "count/widgets.example.com=3")
		c.quota("small", "pods=10")
		c.pod("web", "1")
		pass(10 * time.Second)
		c.want("without widgets", "mixed", "pods=1")
		c.want("without widgets", "small", "pods=1")
		if notes := c.notes(eventNotCounted); len(notes) != 1 || !strings.Contains(notes[0], "count/widgets.example.com is not counted, and status.used keeps its last value: ") {
			t.Errorf("the Events are %q", notes)
		}
		widgets.Before(nil)
		pass(5 * time.Minute)
		c.want("with widgets", "mixed", "count/widgets.example.com=0 pods=1")
	})
}

// A kind was counted, and then its list and its watch fail: what is known of it is the last count. To lower that would let clients
// create more than the quota allows, and to write nothing would keep the other kinds of the quota from being lowered.
func TestAKindThatWasCountedAndCannotBeListedAnyMoreKeepsItsValue(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c := newCluster(t)
		widgets := c.api.Serve(widget)
		add := func(names ...string) {
			t.Helper()
			for _, name := range names {
				if err := widgets.Add(&metav1.PartialObjectMetadata{
					TypeMeta:   metav1.TypeMeta{APIVersion: "example.com/v1", Kind: "Widget"},
					ObjectMeta: metav1.ObjectMeta{Namespace: "shop", Name: name},
				}); err != nil {
					t.Fatal(err)
				}
			}
		}
		add("one", "two")
		p := c.start()
		c.quota("mixed", "pods=10", "count/widgets.example.com=5")
		pass(pace)
		c.admitted("mixed", "web", "1")
		c.admitted("mixed", "db", "1")
		pass(2 * inFlight)
		c.want("at first", "mixed", "count/widgets.example.com=2 pods=2")

		widgets.Before(func(*fakeapi.Request) *metav1.Status { return fakeapi.Unavailable(0) })
		c.api.CutConnections()
		pass(time.Minute) // no object changes, so no event says it
		const reason = "CountMayBeOld: the count of count/widgets.example.com may be old: "
		if reasons := p.Reasons("shop/mixed"); len(reasons) != 1 || !strings.HasPrefix(reasons[0], reason) {
			t.Errorf("after a minute without events the reasons are %q, want %q", reasons, reason)
		}
		widgets.Remove(key("one")) // of which the controller learns nothing
		c.delete("web")
		pass(pace)
		c.want("without widgets", "mixed", "count/widgets.example.com=2 pods=1")
		if reasons := p.Reasons("shop/mixed"); len(reasons) != 1 || !strings.HasPrefix(reasons[0], reason) {
			t.Errorf("the reasons are %q, want %q", reasons, reason)
		}
		// Admission raises it for a creation that fails. No list of the server says so.
		c.raise("mixed", "count/widgets.example.com=1")
		pass(time.Hour)
		c.delete("db")
		pass(pace)
		c.want("without widgets for an hour", "mixed", "count/widgets.example.com=3 pods=0")
		notes := c.notes(eventNotCounted)
		if len(notes) != 1 || !strings.HasPrefix(notes[0], "the count of count/widgets.example.com may be old: ") {
			t.Errorf("the Events are %q, want one that says that the count may be old", notes)
		}

		widgets.Before(nil)
		pass(5 * time.Minute)
		c.want("with widgets", "mixed", "count/widgets.example.com=1 pods=0")
		if reasons := p.Reasons("shop/mixed"); len(reasons) > 0 {
			t.Errorf("with widgets the reasons are %q, want none", reasons)
		}
		add("three")
		pass(2 * pace)
		c.want("with one more", "mixed", "count/widgets.example.com=2 pods=0")
	})
}

// The definition of a kind is deleted. Its objects are gone without an event.
func TestAKindThatVanishesIsSaidAndDelaysNoOther(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c := newCluster(t)
		widgets := c.api.Serve(widget)
		if err := widgets.Add(&metav1.PartialObjectMetadata{
			TypeMeta:   metav1.TypeMeta{APIVersion: "example.com/v1", Kind: "Widget"},
			ObjectMeta: metav1.ObjectMeta{Namespace: "shop", Name: "one"},
		}); err != nil {
			t.Fatal(err)
		}
		p := managertest.Run(t, c.api.Config(), managertest.Making(New, Defaults()))
		c.quota("mixed", "pods=10", "count/widgets.example.com=3")
		c.quota("small", "pods=10")
		pass(time.Minute)
		c.want("at first", "mixed", "count/widgets.example.com=1 pods=0")
		c.api.Withdraw(widget)
		c.pod("web", "1")
		pass(2 * pace)
		c.want("when the kind has vanished", "small", "pods=1")
		pass(2 * time.Minute)
		c.want("when the kind has vanished", "mixed", "count/widgets.example.com=0 pods=1")
		const note = "count/widgets.example.com is not counted: the server does not serve widgets.example.com"
		if notes := c.notes(eventNotCounted); !slices.Contains(notes, note) {
			t.Errorf("the Events are %q, want %q", notes, note)
		}
		const reason = "KindNotServed: count/widgets.example.com is not counted: the server does not serve widgets.example.com (until the kind is served)"
		if reasons := p.Reasons("shop/mixed"); len(reasons) == 0 || reasons[len(reasons)-1] != reason {
			t.Errorf("the reasons are %q, want %q", reasons, reason)
		}
		c.api.Forget()
		events := len(c.notes(eventNotCounted))
		pass(time.Hour)
		asked := 0
		for _, q := range c.api.Requests() {
			if strings.Contains(q.HTTP.URL.Path, "widgets") {
				asked++
			}
		}
		if n := len(c.notes(eventNotCounted)) - events; asked > 0 || n > 0 {
			t.Errorf("in an hour there are %d requests for the kind that vanished, and %d Events more", asked, n)
		}
		c.api.Serve(widget)
		pass(2 * time.Minute)
		c.want("when the kind is back", "mixed", "count/widgets.example.com=0 pods=1")
	})
}

// Only kinds that a quota limits are watched, and only as long.
func TestAKindIsWatchedAsLongAsAQuotaLimitsIt(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c := newCluster(t)
		lists := func(r *fakeapi.Resource, verb string) (n int) {
			for _, q := range r.Requests() {
				if q.Verb == verb {
					n++
				}
			}
			return n
		}
		c.start()
		pass(time.Minute)
		if n := lists(c.pods, "list") + lists(c.pods, "watch") + lists(c.configMaps, "watch"); n > 0 {
			t.Fatalf("%d requests for kinds that no quota limits", n)
		}
		c.quota("small", "configmaps=10")
		pass(pace)
		if n := lists(c.pods, "list") + lists(c.pods, "watch"); n > 0 {
			t.Errorf("%d requests for Pods, which no quota limits", n)
		}
		if n := lists(c.configMaps, "watch"); n == 0 {
			t.Error("a kind that a quota limits is not watched")
		}
		if err := client.For[*corev1.ResourceQuota](c.client).Delete(t.Context(), key("small")); err != nil {
			t.Fatal(err)
		}
		pass(pace)
		before := lists(c.configMaps, "watch")
		pass(time.Hour)
		if n := lists(c.configMaps, "watch") - before; n > 0 {
			t.Errorf("%d watches of a kind that no quota limits any more", n)
		}
	})
}

// A mistake of the controller is found and mended.
func TestAFullCountMendsASum(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c := newCluster(t)
		var r *resourceQuotas
		managertest.Run(c.t, c.api.Config(), managertest.Making(func(h controller.Host, o Options) (controller.Runnable, error) {
			made, err := New(h, o)
			r, _ = made.(*resourceQuotas)
			return made, err
		}, Defaults()))
		synctest.Wait()
		c.quota("small", "pods=10")
		c.pod("web", "1")
		pass(pace)
		a := r.books.in("shop")[0]
		a.mu.Lock()
		a.tallies[accounting.Pods].set("web", charged{uid: "other", Charge: accounting.Charge{Used: hard("pods=3")}})
		a.mu.Unlock()
		pass(3 * Defaults().SyncPeriod)
		c.want("after a full count", "small", "pods=1")
		if n := r.mended.n.Load(); n != 1 {
			t.Errorf("%d objects were mended, want 1", n)
		}
	})
}

// Until a quota has a status, the API server refuses all that it limits. So it goes before quotas
// whose status is old.
func TestAQuotaWithoutAStatusGoesFirst(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c := newCluster(t)
		const n = 100
		for i := range n {
			c.quota(fmt.Sprint("old-", i), "pods=10")
		}
		c.start()
		pass(time.Minute)
		for i := range n {
			c.raise(fmt.Sprint("old-", i), "pods=1")
		}
		c.pod("web", "1")
		pass(time.Minute)
		c.quotas.Delay(func(q *fakeapi.Request) time.Duration {
			if q.Verb == "update" {
				return time.Second
			}
			return 0
		})
		c.delete("web")
		pass(pace + 500*time.Millisecond)
		c.quota("new", "pods=10")
		pass(3 * time.Second)
		c.want("beside quotas that wait for a write", "new", "pods=0")
		waiting := 0
		for i := range n {
			if c.used(fmt.Sprint("old-", i)) == "pods=1" {
				waiting++
			}
		}
		if waiting < n/2 {
			t.Errorf("%d of %d other quotas wait, which shows nothing", waiting, n)
		}
		pass(time.Minute)
		for i := range n {
			c.want("in the end", fmt.Sprint("old-", i), "pods=0")
		}
	})
}

// No quota limits Events: a storm of them must not be refused, nor watched.
func TestAQuotaDoesNotLimitEvents(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c := newCluster(t)
		c.start()
		c.quota("small", "pods=10", "count/events=3", "count/events.events.k8s.io=3")
		pass(time.Minute)
		c.want("with such limits", "small", "pods=0")
		for _, q := range c.api.Requests() {
			if q.Resource.Plural == "events" && (q.Verb == "list" || q.Verb == "watch") {
				t.Errorf("it makes the request %s", q)
			}
		}
	})
}
