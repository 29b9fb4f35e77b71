// Copyright The Setpoint Authors.
// SPDX-License-Identifier: Apache-2.0

package endpointslice

import (
	"fmt"
	"maps"
	"reflect"
	"slices"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	discoveryv1 "k8s.io/api/discovery/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/intstr"
	"k8s.io/client-go/rest"
	"pgregory.net/rapid"

	"github.com/setpoint-io/setpoint/internal/endpointslices"
	"github.com/setpoint-io/setpoint/internal/podstate"
	"github.com/setpoint-io/setpoint/manager"
)

// webService returns the Service of most tests: one family, one port.
func webService() *corev1.Service {
	return &corev1.Service{
		ObjectMeta: metav1.ObjectMeta{Namespace: "shop", Name: "web", UID: "web-uid", Labels: map[string]string{"team": "a"}},
		Spec: corev1.ServiceSpec{
			Selector: map[string]string{"app": "web"}, ClusterIP: "10.96.0.1", IPFamilies: []corev1.IPFamily{corev1.IPv4Protocol},
			Ports: []corev1.ServicePort{{Name: "http", Port: 80, TargetPort: intstr.FromInt32(8080), Protocol: "TCP"}},
		},
	}
}

// webPod returns a Pod that is ready, with an address of each family.
func webPod(n int) *corev1.Pod {
	v4 := fmt.Sprintf("10.0.%d.%d", n/250, n%250+1)
	return &corev1.Pod{
		ObjectMeta: metav1.ObjectMeta{Namespace: "shop", Name: fmt.Sprintf("web-%04d", n), UID: types.UID(fmt.Sprint("uid-", n))},
		Spec:       corev1.PodSpec{NodeName: fmt.Sprint("node-", n%3)},
		Status: corev1.PodStatus{
			PodIP: v4, PodIPs: []corev1.PodIP{{IP: v4}, {IP: fmt.Sprintf("fd00::%x", n+1)}},
			Conditions: []corev1.PodCondition{{Type: corev1.PodReady, Status: corev1.ConditionTrue}},
		},
	}
}

func unready(p *corev1.Pod) *corev1.Pod { p.Status.Conditions = nil; return p }

func terminating(p *corev1.Pod) *corev1.Pod {
	p.DeletionTimestamp = new(metav1.NewTime(time.Unix(1_000_000, 0)))
	return p
}

func membersOf(service *corev1.Service, pods ...*corev1.Pod) []member {
	numbers := newPortNumbers(service)
	var all []member
	for _, p := range pods {
		m := member{pod: p, zone: "zone-" + p.Spec.NodeName}
		m.ports, m.portsKey = numbers.of(p)
		all = append(all, m)
	}
	return all
}

func podsUpTo(n int) []*corev1.Pod {
	var all []*corev1.Pod
	for i := range n {
		all = append(all, webPod(i))
	}
	return all
}

// server is the slices of a Service as a server would hold them.
type server struct {
	slices  []*discoveryv1.EndpointSlice
	version int
}

// take carries out changes.
func (s *server) take(changes endpointslices.Changes) {
	for _, slice := range changes.Create {
		s.version++
		slice = slice.DeepCopy()
		slice.Name = fmt.Sprintf("%s%04d", slice.GenerateName, s.version)
		slice.UID = types.UID(slice.Name)
		s.slices = append(s.slices, slice)
	}
	for _, slice := range changes.Update {
		at := slices.IndexFunc(s.slices, func(old *discoveryv1.EndpointSlice) bool { return old.Name == slice.Name })
		s.slices[at] = slice.DeepCopy()
	}
	for _, slice := range changes.Delete {
		s.slices = slices.DeleteFunc(s.slices, func(old *discoveryv1.EndpointSlice) bool { return old.Name == slice.Name })
	}
}

// run plans and carries the plan out. It returns the plan.
func (s *server) run(service *corev1.Service, pods ...*corev1.Pod) endpointslices.Changes {
	changes, _, _ := plan(service, membersOf(service, pods...), s.slices, 100, nil)
	s.take(changes)
	return changes
}

// sizes returns how many endpoints each slice has, in order.
func (s *server) sizes() []int {
	var all []int
	for _, slice := range s.slices {
		all = append(all, len(slice.Endpoints))
	}
	slices.Sort(all)
	return all
}

func check(t *testing.T, what string, changes endpointslices.Changes, creates, updates, deletes int) {
	t.Helper()
	if len(changes.Create) != creates || len(changes.Update) != updates || len(changes.Delete) != deletes {
		t.Errorf("%s: %d creates, %d updates, %d deletes; want %d, %d, %d",
			what, len(changes.Create), len(changes.Update), len(changes.Delete), creates, updates, deletes)
	}
}

func TestAtMost100EndpointsASlice(t *testing.T) {
	var s server
	check(t, "250 Pods", s.run(webService(), podsUpTo(250)...), 3, 0, 0)
	if have := s.sizes(); !slices.Equal(have, []int{50, 100, 100}) {
		t.Errorf("slices of %v", have)
	}
}

func TestPackingWithTheFewestWrites(t *testing.T) {
	pods := podsUpTo(250)
	fresh := func() *server {
		s := &server{}
		s.run(webService(), pods...)
		return s
	}
	without := func(all []*corev1.Pod, left ...int) []*corev1.Pod {
		var some []*corev1.Pod
		for i, p := range all {
			if !slices.Contains(left, i) {
				some = append(some, p)
			}
		}
		return some
	}
	with := func(all []*corev1.Pod, more ...int) []*corev1.Pod {
		all = slices.Clone(all)
		for _, i := range more {
			all = append(all, webPod(i))
		}
		return all
	}
	first := make([]int, 100)
	for i := range first {
		first[i] = i
	}
	for _, c := range []struct {
		name                      string
		pods                      []*corev1.Pod
		creates, updates, deletes int
		sizes                     []int
	}{
		{"nothing changed", pods, 0, 0, 0, []int{50, 100, 100}},
		{"one Pod more goes where there is room", with(pods, 300), 0, 1, 0, []int{51, 100, 100}},
		{"one Pod less", without(pods, 0), 0, 1, 0, []int{50, 99, 100}},
		{"one Pod replaced takes the place of the one that went", with(without(pods, 0), 300), 0, 1, 0, []int{50, 100, 100}},
		{"a slice that is full up is no place", with(pods, upFrom(300, 60)...), 1, 0, 0, []int{50, 60, 100, 100}},
		{"what fits goes into one that is there", with(pods, upFrom(300, 50)...), 0, 1, 0, []int{100, 100, 100}},
		{"a slice that lost all goes", without(pods, first...), 0, 0, 1, []int{50, 100}},
		{"a slice that lost all is filled first", with(without(pods, first...), upFrom(300, 30)...), 0, 1, 0, []int{30, 50, 100}},
		{"none left", nil, 0, 1, 2, []int{0}},
	} {
		t.Run(c.name, func(t *testing.T) {
			s := fresh()
			check(t, c.name, s.run(webService(), c.pods...), c.creates, c.updates, c.deletes)
			if have := s.sizes(); !slices.Equal(have, c.sizes) {
				t.Errorf("slices of %v, want %v", have, c.sizes)
			}
			check(t, "once more", s.run(webService(), c.pods...), 0, 0, 0)
		})
	}
}

func TestTheFullestSliceThatHasRoomIsFilledFirst(t *testing.T) {
	var s server
	pods := podsUpTo(250) // slices of 0 to 99, 100 to 199, and the rest
	s.run(webService(), pods...)
	step := func(name string, updates int, sizes []int, pods []*corev1.Pod) {
		t.Helper()
		check(t, name, s.run(webService(), pods...), 0, updates, 0)
		if have := s.sizes(); !slices.Equal(have, sizes) {
			t.Errorf("%s: slices of %v, want %v", name, have, sizes)
		}
	}
	fewer := slices.Concat(pods[10:100], pods[130:])
	for _, n := range upFrom(300, 5) {
		fewer = append(fewer, webPod(n))
	}
	step("of two that are written", 2, []int{50, 70, 95}, fewer)
	for _, n := range upFrom(310, 4) {
		fewer = append(fewer, webPod(n))
	}
	step("of three", 1, []int{50, 70, 99}, fewer)
	for _, n := range upFrom(320, 25) {
		fewer = append(fewer, webPod(n))
	}
	step("of two that have room for all", 1, []int{50, 95, 99}, fewer)
}

func upFrom(n, count int) []int {
	var all []int
	for i := range count {
		all = append(all, n+i)
	}
	return all
}

func TestOnePodThatBecomesReadyIsOneWrite(t *testing.T) {
	pods := podsUpTo(250)
	unready(pods[120])
	var s server
	s.run(webService(), pods...)
	pods[120] = webPod(120)
	changes := s.run(webService(), pods...)
	check(t, "one Pod ready", changes, 0, 1, 0)
	changed := 0
	for _, e := range changes.Update[0].Endpoints {
		if e.TargetRef.Name == pods[120].Name && *e.Conditions.Ready {
			changed++
		}
	}
	if changed != 1 {
		t.Error("the slice that is written is not the one of the Pod")
	}
}

// Random lives of a Service: whatever happens, each Pod stands in one slice, slices are
// full at most, a second run has nothing to do, and no more is written than must be.
func TestPackingOverRandomLives(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		const most = 5
		service := webService()
		var s server
		pods := map[int]*corev1.Pod{}
		for range rapid.IntRange(1, 12).Draw(t, "steps") {
			for _, n := range rapid.SliceOfNDistinct(rapid.IntRange(0, 30), 0, 12, rapid.ID).Draw(t, "pods") {
				switch rapid.IntRange(0, 3).Draw(t, "what") {
				case 0:
					delete(pods, n)
				case 1:
					pods[n] = unready(webPod(n))
				default:
					pods[n] = webPod(n)
				}
			}
			var list []*corev1.Pod
			for _, n := range slices.Sorted(maps.Keys(pods)) {
				list = append(list, pods[n])
			}
			before := slices.Clone(s.slices)
			changes, _, _ := plan(service, membersOf(service, list...), s.slices, most, nil)
			s.take(changes)
			s.holds(t, list, most)
			if again, _, _ := plan(service, membersOf(service, list...), s.slices, most, nil); again.Count() != 0 {
				t.Fatalf("a second run has %d writes", again.Count())
			}
			if must := mustWrite(before, list, most); changes.Count() > must {
				t.Fatalf("%d writes, and %d would do", changes.Count(), must)
			}
		}
	})
}

// holds checks what must be so of slices at any time.
func (s *server) holds(t *rapid.T, pods []*corev1.Pod, most int) {
	have := map[string]bool{}
	for _, slice := range s.slices {
		if len(slice.Endpoints) > most {
			t.Fatalf("a slice of %d", len(slice.Endpoints))
		}
		if len(slice.Endpoints) == 0 && len(s.slices) > 1 {
			t.Fatal("an empty slice beside others")
		}
		for _, e := range slice.Endpoints {
			if have[e.TargetRef.Name] {
				t.Fatalf("%s stands twice", e.TargetRef.Name)
			}
			have[e.TargetRef.Name] = true
		}
	}
	for _, p := range pods {
		if !have[p.Name] {
			t.Fatalf("%s stands nowhere", p.Name)
		}
	}
	if len(have) != len(pods) || len(s.slices) == 0 {
		t.Fatalf("%d endpoints of %d Pods in %d slices", len(have), len(pods), len(s.slices))
	}
}

// mustWrite returns how many writes a change needs at least, if what is left over goes
// nowhere but into slices that are written anyway, one that has room for all, or new
// ones.
func mustWrite(before []*discoveryv1.EndpointSlice, pods []*corev1.Pod, most int) int {
	ready := map[string]bool{}
	for _, p := range pods {
		ready[p.Name] = podstate.Ready(p)
	}
	writes, room, left := 0, 0, len(pods)
	best := 0
	for _, slice := range before {
		stay, touched := 0, false
		for _, e := range slice.Endpoints {
			is, there := ready[e.TargetRef.Name]
			if there {
				stay++
				left--
			}
			touched = touched || !there || is != *e.Conditions.Ready
		}
		if touched || len(slice.Endpoints) == 0 && len(pods) > 0 {
			writes++
			room += most - stay
		} else {
			best = max(best, most-stay)
		}
	}
	left = max(0, left-room)
	if len(before) == 0 && len(pods) == 0 {
		return 1 // one without endpoints
	}
	writes += left / most
	if left %= most; left > 0 {
		writes++
	}
	return writes
}

func TestForeignSlicesOfTheNameAreNotUsedAgain(t *testing.T) {
	var s server
	old := webService()
	old.UID = "older"
	s.run(old, podsUpTo(3)...)
	changes := s.run(webService(), podsUpTo(3)...)
	check(t, "a Service of the same name", changes, 1, 0, 1)
	if changes.Create[0].OwnerReferences[0].UID != "web-uid" {
		t.Errorf("the owner is %v", changes.Create[0].OwnerReferences)
	}
}

func TestConditionsOfEndpoints(t *testing.T) {
	for _, c := range []struct {
		name                        string
		pod                         *corev1.Pod
		publish                     bool
		ready, serving, terminating bool
	}{
		{"ready", webPod(0), false, true, true, false},
		{"not ready", unready(webPod(0)), false, false, false, false},
		{"terminating and still serving", terminating(webPod(0)), false, false, true, true},
		{"terminating", terminating(unready(webPod(0))), false, false, false, true},
		{"published though not ready", unready(webPod(0)), true, true, false, false},
		{"published though terminating", terminating(unready(webPod(0))), true, true, false, true},
	} {
		service := webService()
		service.Spec.PublishNotReadyAddresses = c.publish
		m := member{pod: c.pod}
		e, _ := m.endpoint(service, corev1.IPv4Protocol)
		if *e.Conditions.Ready != c.ready || *e.Conditions.Serving != c.serving || *e.Conditions.Terminating != c.terminating {
			t.Errorf("%s: ready %t, serving %t, terminating %t", c.name, *e.Conditions.Ready, *e.Conditions.Serving, *e.Conditions.Terminating)
		}
	}
}

func TestAnEndpointSaysItsPodNodeZoneAndHostname(t *testing.T) {
	p := webPod(7)
	p.Spec.Hostname, p.Spec.Subdomain = "seven", "web"
	e, ok := membersOf(webService(), p)[0].endpoint(webService(), corev1.IPv4Protocol)
	if !ok || *e.NodeName != "node-1" || *e.Zone != "zone-node-1" || *e.Hostname != "seven" {
		t.Errorf("have %v", e)
	}
	if ref := *e.TargetRef; ref != (corev1.ObjectReference{Kind: "Pod", Namespace: "shop", Name: "web-0007", UID: "uid-7"}) {
		t.Errorf("the target is %v", ref)
	}
	p.Spec.Subdomain = "other"
	if e, _ := membersOf(webService(), p)[0].endpoint(webService(), corev1.IPv4Protocol); e.Hostname != nil {
		t.Errorf("a hostname below another Service: %s", *e.Hostname)
	}
}

func TestDualStackHasASliceSetPerAddressFamily(t *testing.T) {
	service := webService()
	service.Spec.IPFamilies = []corev1.IPFamily{corev1.IPv4Protocol, corev1.IPv6Protocol}
	var s server
	check(t, "both", s.run(service, podsUpTo(2)...), 2, 0, 0)
	for _, slice := range s.slices {
		want := map[discoveryv1.AddressType]string{"IPv4": "10.0.0.1", "IPv6": "fd00::1"}[slice.AddressType]
		if len(slice.Endpoints) != 2 || !slices.Equal(slice.Endpoints[0].Addresses, []string{want}) {
			t.Errorf("%s: %v", slice.AddressType, slice.Endpoints)
		}
	}
	lonely := webPod(0)
	lonely.Status.PodIPs = lonely.Status.PodIPs[:1]
	check(t, "a family that no Pod has", s.run(service, lonely), 0, 2, 0)
	if have := s.sizes(); !slices.Equal(have, []int{0, 1}) {
		t.Errorf("slices of %v", have)
	}
	check(t, "one family given up", s.run(webService(), lonely), 0, 0, 1)
}

func TestNamedPortsThatDifferMakeSlicesOfTheirOwn(t *testing.T) {
	service := webService()
	service.Spec.Ports[0].TargetPort = intstr.FromString("http")
	pods := podsUpTo(4)
	for i, p := range pods {
		p.Spec.Containers = []corev1.Container{{Ports: []corev1.ContainerPort{{Name: "http", ContainerPort: int32(8080 + i%2), Protocol: "TCP"}}}}
	}
	pods = append(pods, webPod(4)) // has no such port
	var s server
	check(t, "two numbers, and none", s.run(service, pods...), 3, 0, 0)
	have := map[int32]int{}
	for _, slice := range s.slices {
		number := int32(0)
		if len(slice.Ports) > 0 {
			number = *slice.Ports[0].Port
		}
		have[number] += len(slice.Endpoints)
	}
	if want := map[int32]int{8080: 2, 8081: 2, 0: 1}; !maps.Equal(have, want) {
		t.Errorf("endpoints by port %v, want %v", have, want)
	}
	for _, p := range pods[:4] {
		p.Spec.Containers[0].Ports[0].ContainerPort = 9090
	}
	check(t, "all changed to one", s.run(service, pods...), 0, 1, 1)
}

func TestAHeadlessServiceNeedsNoPortsAndHasTheLabel(t *testing.T) {
	service := webService()
	service.Spec.ClusterIP, service.Spec.Ports = corev1.ClusterIPNone, nil
	var s server
	check(t, "headless", s.run(service, podsUpTo(2)...), 1, 0, 0)
	if _, ok := s.slices[0].Labels[corev1.IsHeadlessService]; !ok || len(s.slices[0].Endpoints) != 2 || len(s.slices[0].Ports) != 0 {
		t.Errorf("have %v", s.slices[0])
	}
	check(t, "no Pods", s.run(service), 0, 1, 0)
	check(t, "Pods again", s.run(service, podsUpTo(2)...), 0, 1, 0)
}

func TestServiceLabelsAreMirroredAndReservedOnesAreNot(t *testing.T) {
	service := webService()
	service.Labels = map[string]string{"team": "b", discoveryv1.LabelManagedBy: "me", discoveryv1.LabelServiceName: "mine", corev1.IsHeadlessService: "yes"}
	var s server
	s.run(webService(), podsUpTo(250)...)
	check(t, "other labels", s.run(service, podsUpTo(250)...), 0, 3, 0)
	want := map[string]string{"team": "b", discoveryv1.LabelManagedBy: Manager, discoveryv1.LabelServiceName: "web"}
	for _, slice := range s.slices {
		if !maps.Equal(slice.Labels, want) {
			t.Errorf("labels %v, want %v", slice.Labels, want)
		}
	}
	s.slices[1].Labels["mine"] = "too"
	check(t, "a label of somebody else's", s.run(service, podsUpTo(250)...), 0, 1, 0)
}

func TestAServiceThatIsBeingDeletedGetsNoNewSlices(t *testing.T) {
	service := webService()
	var s server
	s.run(service, podsUpTo(100)...)
	service.DeletionTimestamp = new(metav1.NewTime(time.Unix(1, 0)))
	pods := podsUpTo(150)
	unready(pods[0])
	check(t, "going", s.run(service, pods...), 0, 1, 0)
}

func TestAnEndpointThatStandsTwiceLosesOnePlace(t *testing.T) {
	var s server
	s.run(webService(), podsUpTo(3)...)
	twin := s.slices[0].DeepCopy()
	twin.Name = "web-twin"
	s.slices = append(s.slices, twin)
	check(t, "two slices with the same", s.run(webService(), podsUpTo(3)...), 0, 0, 1)
}

func TestTheTriggerTimeIsWrittenOrTakenAway(t *testing.T) {
	slice := &discoveryv1.EndpointSlice{}
	changes := endpointslices.Changes{Update: []*discoveryv1.EndpointSlice{slice}}
	stamp(&changes, time.Date(2026, 1, 2, 3, 4, 5, 0, time.FixedZone("", 3600)))
	if have := slice.Annotations[corev1.EndpointsLastChangeTriggerTime]; have != "2026-01-02T02:04:05Z" {
		t.Errorf("the annotation is %q", have)
	}
	stamp(&changes, time.Time{})
	if have, ok := slice.Annotations[corev1.EndpointsLastChangeTriggerTime]; ok {
		t.Errorf("the annotation is %q", have)
	}
}

func TestCachedSlicesAreNotChanged(t *testing.T) {
	var s server
	s.run(webService(), podsUpTo(100)...)
	s.slices[0].Annotations = map[string]string{corev1.EndpointsLastChangeTriggerTime: "then"}
	before := s.slices[0].DeepCopy()
	service := webService()
	service.Spec.TrafficDistribution = new(corev1.ServiceTrafficDistributionPreferClose)
	pods := podsUpTo(150)
	unready(pods[3])
	cached := slices.Clone(s.slices)
	changes, _, _ := plan(service, membersOf(service, pods...), s.slices, 100, nil)
	stamp(&changes, time.Now())
	if !reflect.DeepEqual(cached[0], before) {
		t.Error("the slice is another one than before")
	}
}

func TestOptionsOutOfBoundsAreRefused(t *testing.T) {
	mgr, err := manager.New(&rest.Config{Host: "https://127.0.0.1:1"})
	if err != nil {
		t.Fatal(err)
	}
	for _, o := range []Options{{Workers: -1}, {MaxEndpointsPerSlice: -1}, {MaxEndpointsPerSlice: 1001}} {
		if _, err := New(mgr, o); err == nil {
			t.Errorf("%+v was taken", o)
		}
	}
}
