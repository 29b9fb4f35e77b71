// Copyright The Setpoint Authors.
// SPDX-License-Identifier: Apache-2.0

package resourcequota

import (
	"fmt"
	"maps"
	"slices"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"pgregory.net/rapid"

	"github.com/setpoint-io/setpoint/controller/accounting"
)

func count(n int) corev1.ResourceList { return hard(fmt.Sprintf("pods=%d", n)) }

// begun returns an account of Pods that has counted some.
func begun(t interface{ Fatal(...any) }, names ...string) *account {
	q := &corev1.ResourceQuota{ObjectMeta: metav1.ObjectMeta{Namespace: "shop", Name: "small", UID: "q"}, Spec: corev1.ResourceQuotaSpec{Hard: count(10)}}
	quota, err := accounting.NewQuota(q)
	if err != nil {
		t.Fatal(err)
	}
	a := newAccount(q, quota, inFlight)
	objects := map[string]charged{}
	for _, name := range names {
		objects[name] = charged{uid: types.UID(name), Charge: accounting.Charge{Used: count(1)}}
	}
	a.load(accounting.Pods, quota.Limited(), objects)
	return a
}

// decide plans the status of a quota whose status.used is recorded now.
func (a *account) decide(recorded int, since, now time.Time) plan {
	q := &corev1.ResourceQuota{Spec: corev1.ResourceQuotaSpec{Hard: count(10)}, Status: corev1.ResourceQuotaStatus{Hard: count(10), Used: count(recorded)}}
	names := []corev1.ResourceName{corev1.ResourcePods}
	a.observe(q.Status.Used, names, since, now)
	return a.plan(q, names, now)
}

func (p *plan) pods() int64      { return p.status.Used.Pods().Value() }
func (p *plan) surplusOf() int64 { return p.surplus.Pods().Value() }

func TestWhatIsRecordedIsLoweredByWhatGoesAndNotToTheCount(t *testing.T) {
	now := time.Unix(1000, 0)
	one := charged{created: now, Charge: accounting.Charge{Used: count(1)}}
	for _, c := range []struct {
		name     string
		change   func(a *account)
		recorded int // after two that are counted
		after    time.Duration
		want     int64
		surplus  int64
	}{
		{"nothing", func(*account) {}, 2, 0, 2, 0},
		{"one has gone", func(a *account) { a.set(accounting.Pods, "a", charged{}) }, 2, 0, 1, 0},
		{"one is in flight", func(*account) {}, 3, 0, 3, 0},
		{"one is in flight and one has gone", func(a *account) { a.set(accounting.Pods, "a", charged{}) }, 3, 0, 2, 0},
		{"one is in flight for too long", func(*account) {}, 3, inFlight + 2*time.Second, 3, 1},
		{"one has appeared", func(a *account) { o := one; o.uid = "c"; a.set(accounting.Pods, "c", o) }, 3, 0, 3, 0},
		{"one has appeared that nobody recorded", func(a *account) { o := one; o.uid = "c"; a.set(accounting.Pods, "c", o) }, 2, 0, 3, 0},
		{"one was replaced", func(a *account) { o := one; o.uid = "c"; a.set(accounting.Pods, "a", o) }, 3, 0, 2, 0},
		{"less is recorded than there is", func(*account) {}, 1, 0, 2, 0},
	} {
		t.Run(c.name, func(t *testing.T) {
			a := begun(t, "a", "b")
			if p := a.decide(2, now, now); p.pods() != 2 {
				t.Fatalf("at first the plan is %v", p.status.Used)
			}
			a.decide(c.recorded, now, now)
			c.change(a)
			p := a.decide(c.recorded, now, now.Add(c.after))
			if p.pods() != c.want || p.surplusOf() != c.surplus {
				t.Errorf("the plan is %v with a surplus of %v, want %d and %d", p.status.Used, p.surplus, c.want, c.surplus)
			}
		})
	}
}

// A process that starts knows nothing of what was in flight. The time of the last write says
// whether something can be.
func TestAtTheStartTheLastWriteDecides(t *testing.T) {
	now := time.Unix(1000, 0)
	for since, surplus := range map[time.Duration]int64{0: 0, inFlight / 2: 0, inFlight + 2*time.Second: 3} {
		if p := begun(t, "a", "b").decide(5, now.Add(-since), now); p.pods() != 5 || p.surplusOf() != surplus {
			t.Errorf("%s after the last write the surplus is %v, want %d", since, p.surplus, surplus)
		}
	}
}

// Requests that fail after admission leave something behind while others succeed all the time.
func TestAFailedCreationIsFoundAmongMany(t *testing.T) {
	now := time.Unix(1000, 0)
	a := begun(t)
	recorded := 0
	a.decide(recorded, now, now)
	recorded++ // and it fails
	for i := range 100 {
		now = now.Add(time.Second)
		recorded++
		a.decide(recorded, now, now)
		a.set(accounting.Pods, fmt.Sprint(i), charged{uid: types.UID(fmt.Sprint(i)), created: now, Charge: accounting.Charge{Used: count(1)}})
	}
	if p := a.decide(recorded, now, now); p.surplusOf() != 1 {
		t.Errorf("among creations of one a second the surplus is %v, want 1", p.surplus)
	}
}

// Whatever requests, admission and the two watches do in whatever order: what the controller
// writes is never less than the objects that are stored or will be, and in the end it is the count.
func TestUsedIsNeverBelowTheTruth(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		now := time.Unix(100_000, 0)
		a := begun(t)
		recorded := 0      // on the server
		shownRecorded := 0 // by the watch of quotas
		var admitted, shownAdmitted time.Time
		flying := map[int]time.Time{} // admitted, not stored
		stored := map[string]time.Time{}
		shown := map[string]bool{} // to the watch of Pods; it may be behind
		var behind []func()        // changes that the watch of Pods has not shown
		next := 0
		show := func() {
			if len(behind) > 0 {
				behind[0]()
				behind = behind[1:]
			}
		}
		write := func() {
			p := a.decide(shownRecorded, shownAdmitted, now)
			if len(p.surplus) > 0 {
				// A list of the server.
				counted := a.count(corev1.ResourcePods)
				p.relieve(count(max(len(stored), int(counted.Value()))), func(name corev1.ResourceName) resource.Quantity { return a.flight.most(name, now) })
			}
			if shownRecorded != recorded {
				shownRecorded, shownAdmitted = recorded, admitted // conflict
				return
			}
			if got := int(p.pods()); got != recorded {
				recorded, shownRecorded = got, got
			}
			a.settle(p.freed)
			a.remember(p.status.Used, []corev1.ResourceName{corev1.ResourcePods})
			if recorded < len(stored)+len(flying) {
				t.Fatalf("status.used is %d, and there are %d objects and %d in flight", recorded, len(stored), len(flying))
			}
		}
		for range rapid.IntRange(1, 80).Draw(t, "steps") {
			now = now.Add(time.Duration(rapid.IntRange(0, 3000).Draw(t, "ms")) * time.Millisecond)
			for id, since := range flying {
				if now.Sub(since) > 34*time.Second { // the server ends the request
					delete(flying, id)
				}
			}
			switch rapid.IntRange(0, 7).Draw(t, "what") {
			case 0, 1:
				next++
				recorded++
				flying[next], admitted = now, now
			case 2, 3:
				for _, id := range slices.Sorted(maps.Keys(flying)) {
					name, created := fmt.Sprint(id), flying[id]
					delete(flying, id)
					stored[name] = created
					behind = append(behind, func() {
						shown[name] = true
						a.set(accounting.Pods, name, charged{uid: types.UID(name), created: created, Charge: accounting.Charge{Used: count(1)}})
					})
					break
				}
			case 4:
				for _, name := range slices.Sorted(maps.Keys(stored)) {
					delete(stored, name)
					behind = append(behind, func() { a.set(accounting.Pods, name, charged{}) })
					break
				}
			case 5:
				show()
			case 6:
				shownRecorded, shownAdmitted = recorded, admitted
			case 7:
				show()
				write()
			}
		}
		// Nothing happens any more.
		clear(flying)
		for len(behind) > 0 {
			show()
		}
		for range 3 {
			shownRecorded, shownAdmitted = recorded, admitted
			now = now.Add(inFlight + 3*time.Second)
			write()
		}
		if recorded != len(stored) {
			t.Fatalf("in the end status.used is %d, and there are %d objects", recorded, len(stored))
		}
	})
}

// The sums after any history of events and lists are those of a full count.
func TestSumsAreThoseOfAFullCount(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		a := begun(t)
		objects := map[string]charged{}
		uid := 0
		for range rapid.IntRange(1, 60).Draw(t, "events") {
			name := rapid.SampledFrom([]string{"a", "b", "c", "d"}).Draw(t, "name")
			before := a.count(corev1.ResourcePods)
			freed := a.freed.Pods().DeepCopy()
			switch rapid.IntRange(0, 3).Draw(t, "what") {
			case 0:
				delete(objects, name)
				a.set(accounting.Pods, name, charged{})
			case 1, 2:
				now := objects[name]
				if now.uid == "" || rapid.Bool().Draw(t, "replaced") {
					uid++
					now.uid = types.UID(fmt.Sprint(uid))
				}
				now.Used = count(rapid.IntRange(0, 5).Draw(t, "amount"))
				objects[name] = now
				a.set(accounting.Pods, name, now)
			case 3: // a list
				a.load(accounting.Pods, a.quota.Limited(), maps.Clone(objects))
			}
			want := 0
			for _, o := range objects {
				want += int(o.Used.Pods().Value())
			}
			sum := a.count(corev1.ResourcePods)
			if sum.Value() != int64(want) {
				t.Fatalf("the sum is %v, want %d", sum.String(), want)
			}
			// What is less now was freed.
			now := a.freed.Pods().DeepCopy()
			if now.Sub(freed); before.Value()-sum.Value() > now.Value() {
				t.Fatalf("the sum went from %v to %v, and %v was freed", before.String(), sum.String(), now.String())
			}
		}
	})
}
