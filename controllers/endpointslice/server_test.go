// Copyright The Setpoint Authors.
// SPDX-License-Identifier: Apache-2.0

package endpointslice

import (
	"context"
	"fmt"
	"io"
	"maps"
	"math"
	"net/http"
	"os"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	discoveryv1 "k8s.io/api/discovery/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/intstr"
	"k8s.io/client-go/rest"

	"github.com/setpoint-io/setpoint/client"
	"github.com/setpoint-io/setpoint/controller"
	"github.com/setpoint-io/setpoint/internal/controlplanetest"
	"github.com/setpoint-io/setpoint/internal/managertest"
	"github.com/setpoint-io/setpoint/internal/servicetest"
	"github.com/setpoint-io/setpoint/manager"
	"github.com/setpoint-io/setpoint/object"
	"github.com/setpoint-io/setpoint/workqueue"
)

var shared = controlplanetest.Shared{}

func TestMain(m *testing.M) { os.Exit(shared.Main(m)) }

// theController works on one key after the other: what comes later has been worked on,
// so what came before has been too.
var theController = managertest.Making(New, Options{Workers: 1, MaxEndpointsPerSlice: 100})

// settled waits until all that was done so far has been worked on: until a Service that
// is made now has its slice.
func settled(s *servicetest.Scene, name string) {
	s.Service(name)
	s.Shows("the slice of a later Service", name, "IPv4 :")
}

// writes returns how a process changed slices of a Service after they were made.
func writes(p *managertest.Process, s *servicetest.Scene, service string) (all []string) {
	collection := "/apis/discovery.k8s.io/v1/namespaces/" + s.Namespace + "/endpointslices/"
	for _, w := range p.Writes() {
		if strings.Contains(w, collection+service+"-") {
			all = append(all, strings.Replace(w, collection, "", 1))
		}
	}
	return all
}

func web(n ...int) string {
	text := "IPv4 8080:"
	for _, i := range n {
		text += " " + servicetest.IP("web", i)
	}
	return text
}

func TestServer250PodsAre3SlicesAndOneThatBecomesReadyIsOneWrite(t *testing.T) {
	s := servicetest.On(t, shared.Get(t))
	s.Service("web")
	s.Pods("web", 0, 249)
	s.Pod("web", 249, servicetest.Unready)
	p := s.Run(theController)
	sizes := func() []int {
		var all []int
		for _, slice := range s.Slices("web") {
			all = append(all, len(slice.Endpoints))
		}
		slices.Sort(all)
		return all
	}
	s.Until("three slices", func() bool { return slices.Equal(sizes(), []int{50, 100, 100}) })
	settled(s, "first")
	if others := writes(p, s, "web"); s.Made("web") != 3 || len(others) != 0 {
		t.Errorf("%d creates, and %q", s.Made("web"), others)
	}
	pod := servicetest.Change(s, s.Key("web-249"), servicetest.Ready, "status")
	ready := func() bool {
		return slices.ContainsFunc(s.Slices("web"), func(slice *discoveryv1.EndpointSlice) bool {
			return slices.ContainsFunc(slice.Endpoints, func(e discoveryv1.Endpoint) bool {
				return e.TargetRef.UID == pod.UID && *e.Conditions.Ready
			})
		})
	}
	s.Until("the last one ready", ready)
	settled(s, "second")
	if others := writes(p, s, "web"); s.Made("web") != 3 || len(others) != 1 {
		t.Errorf("after one Pod became ready there are %d creates, and %q", s.Made("web"), others)
	}
}

func TestServerALifeOfPods(t *testing.T) {
	s := servicetest.On(t, shared.Get(t))
	s.Run(theController)
	s.Service("web")
	s.Shows("nobody", "web", "IPv4 :")
	s.Pods("web", 0, 3)
	s.Shows("three", "web", web(0, 1, 2))
	servicetest.Change(s, s.Key("web-1"), servicetest.Unready, "status")
	s.Shows("one not ready", "web", strings.Replace(web(0, 1, 2), servicetest.IP("web", 1), servicetest.IP("web", 1)+"()", 1))
	servicetest.Change(s, s.Key("web-1"), servicetest.Ready, "status")
	s.Shows("ready again", "web", web(0, 1, 2))

	servicetest.Change(s, s.Key("web-1"), func(p *corev1.Pod) { p.Labels["app"] = "quarantine" })
	s.Shows("one with other labels", "web", web(0, 2))
	servicetest.Change(s, s.Key("web-1"), func(p *corev1.Pod) { p.Labels["app"] = "web" })
	s.Shows("it is back", "web", web(0, 1, 2))

	servicetest.Change(s, s.Key("web-2"), func(p *corev1.Pod) {
		p.Status.PodIP, p.Status.PodIPs = servicetest.IP("web", 9), []corev1.PodIP{{IP: servicetest.IP("web", 9)}}
	}, "status")
	s.Shows("one with another address", "web", "IPv4 8080: "+strings.Join([]string{servicetest.IP("web", 0), servicetest.IP("web", 9), servicetest.IP("web", 1)}, " "))

	servicetest.Delete[*corev1.Pod](s, "web-2", client.GracePeriod(time.Minute))
	s.Until("one that terminates and still serves", func() bool {
		return strings.Contains(s.Shown("web")[0], servicetest.IP("web", 9)+"(serving,terminating)")
	})
	servicetest.Delete[*corev1.Pod](s, "web-2")
	s.Shows("it is gone", "web", web(0, 1))
	servicetest.Change(s, s.Key("web-1"), func(p *corev1.Pod) { p.Status.Phase = corev1.PodFailed }, "status")
	s.Shows("one has ended", "web", web(0))
	servicetest.Delete[*corev1.Pod](s, "web-0")
	s.Shows("the last one gone", "web", "IPv4 :")
}

func TestServerForeignSlicesAreKept(t *testing.T) {
	s := servicetest.On(t, shared.Get(t))
	s.Service("web")
	s.Pod("web", 0)
	foreign, err := client.For[*discoveryv1.EndpointSlice](s.Client).Create(t.Context(), &discoveryv1.EndpointSlice{
		ObjectMeta: metav1.ObjectMeta{Namespace: s.Namespace, Name: "web-mine", Labels: map[string]string{
			discoveryv1.LabelServiceName: "web", discoveryv1.LabelManagedBy: "me"}},
		AddressType: discoveryv1.AddressTypeIPv4,
		Endpoints:   []discoveryv1.Endpoint{{Addresses: []string{"192.0.2.1"}}},
	})
	if err != nil {
		t.Fatal(err)
	}
	s.Run(theController)
	s.Shows("both", "web", "IPv4 8080: "+servicetest.IP("web", 0), "IPv4 : 192.0.2.1()")
	servicetest.Delete[*corev1.Pod](s, "web-0")
	settled(s, "later")
	now, err := client.For[*discoveryv1.EndpointSlice](s.Client).Get(t.Context(), s.Key("web-mine"))
	if err != nil || now.ResourceVersion != foreign.ResourceVersion {
		t.Errorf("the foreign slice was touched: %v, %v", now, err)
	}
}

func TestServerServicesWithoutSelectorAndExternalNamesAreLeftAlone(t *testing.T) {
	s := servicetest.On(t, shared.Get(t))
	s.Run(theController)
	s.Service("bare", func(service *corev1.Service) { service.Spec.Selector = nil })
	s.Service("elsewhere", func(service *corev1.Service) {
		service.Spec.Type, service.Spec.ExternalName = corev1.ServiceTypeExternalName, "example.com"
	})
	s.Pod("elsewhere", 0)
	settled(s, "later")
	if s.Made("bare")+s.Made("elsewhere") != 0 {
		t.Errorf("slices were made: %v", s.Shown(""))
	}
}

func TestServerAServiceWithoutItsSelectorKeepsItsSlices(t *testing.T) {
	s := servicetest.On(t, shared.Get(t))
	s.Run(theController)
	s.Service("web")
	s.Pod("web", 0)
	s.Shows("one", "web", web(0))
	servicetest.Change(s, s.Key("web"), func(service *corev1.Service) { service.Spec.Selector = nil })
	settled(s, "sooner") // the informer of Pods may be ahead of that of Services
	servicetest.Delete[*corev1.Pod](s, "web-0")
	settled(s, "later")
	if have := s.Shown("web"); !slices.Equal(have, []string{web(0)}) {
		t.Errorf("the slices are %q", have)
	}
}

func TestServerSlicesOfADeletedServiceAreLeftToTheGarbageCollector(t *testing.T) {
	s := servicetest.On(t, shared.Get(t))
	p := s.Run(theController)
	service := s.Service("web")
	s.Shows("none", "web", "IPv4 :")
	s.Pod("web", 0)
	s.Shows("one", "web", web(0))
	owner := s.Slices("web")[0].OwnerReferences
	if len(owner) != 1 || owner[0].UID != service.UID || !*owner[0].Controller || !*owner[0].BlockOwnerDeletion {
		t.Errorf("the slice belongs to %v", owner)
	}
	servicetest.Delete[*corev1.Service](s, "web")
	settled(s, "later")
	if others := writes(p, s, "web"); len(others) != 1 { // the placeholder that got its first endpoint
		t.Errorf("writes: %q", others)
	}
	// Nobody collects garbage here. Another Service of the name does not take over.
	other := s.Service("web")
	s.Until("a slice of its own", func() bool {
		all := s.Slices("web")
		return len(all) == 1 && all[0].OwnerReferences[0].UID == other.UID && servicetest.Text(all[0]) == web(0)
	})
}

func TestServerHeadlessServices(t *testing.T) {
	s := servicetest.On(t, shared.Get(t))
	s.Run(theController)
	s.Service("web", func(service *corev1.Service) { service.Spec.ClusterIP, service.Spec.Ports = corev1.ClusterIPNone, nil })
	s.Pod("web", 0, func(pod *corev1.Pod) { pod.Spec.Hostname, pod.Spec.Subdomain = "zero", "web" })
	s.Shows("without ports", "web", "IPv4 : "+servicetest.IP("web", 0))
	slice := s.Slices("web")[0]
	if _, ok := slice.Labels[corev1.IsHeadlessService]; !ok {
		t.Errorf("the labels are %v", slice.Labels)
	}
	if h := slice.Endpoints[0].Hostname; h == nil || *h != "zero" {
		t.Errorf("the hostname is %v", h)
	}
}

func TestServerPublishNotReadyAddresses(t *testing.T) {
	s := servicetest.On(t, shared.Get(t))
	s.Run(theController)
	s.Service("web", func(service *corev1.Service) { service.Spec.PublishNotReadyAddresses = true })
	s.Pod("web", 0, servicetest.Unready)
	s.Shows("published", "web", web(0)+"(ready)")
	servicetest.Change(s, s.Key("web"), func(service *corev1.Service) { service.Spec.PublishNotReadyAddresses = false })
	s.Shows("not published", "web", web(0)+"()")
}

func TestServerNamedPortsThatDiffer(t *testing.T) {
	s := servicetest.On(t, shared.Get(t))
	s.Run(theController)
	s.Service("web", func(service *corev1.Service) { service.Spec.Ports[0].TargetPort = intstr.FromString("http") })
	for n := range 3 {
		s.Pod("web", n, func(pod *corev1.Pod) {
			pod.Spec.Containers[0].Ports = []corev1.ContainerPort{{Name: "http", ContainerPort: int32(8080 + n%2)}}
		})
	}
	s.Shows("a slice for each number", "web", web(0, 2), "IPv4 8081: "+servicetest.IP("web", 1))
}

func TestServerNodesZonesAndHints(t *testing.T) {
	s := servicetest.On(t, shared.Get(t))
	s.Run(theController)
	s.Service("web", func(service *corev1.Service) {
		service.Spec.TrafficDistribution = new(corev1.ServiceTrafficDistributionPreferSameNode)
	})
	s.Pod("web", 0)
	s.Pod("web", 1, func(pod *corev1.Pod) { pod.Spec.NodeName = servicetest.NodeB })
	hints := func(want ...string) func() bool {
		return func() bool {
			var have []string
			for _, slice := range s.Slices("web") {
				for _, e := range slice.Endpoints {
					have = append(have, fmt.Sprint(*e.NodeName, " ", *e.Zone, " ", hintsText(&e)))
				}
			}
			slices.Sort(have)
			return slices.Equal(have, want)
		}
	}
	s.Until("each for its node", hints("node-a zone-a zone-a|node-a", "node-b zone-b zone-b|node-b"))
	servicetest.Change(s, s.Key("web"), func(service *corev1.Service) {
		service.Spec.TrafficDistribution = new(corev1.ServiceTrafficDistributionPreferClose)
	})
	s.Until("each for its zone", hints("node-a zone-a zone-a|", "node-b zone-b zone-b|"))
	servicetest.Change(s, s.Key("web"), func(service *corev1.Service) { service.Spec.TrafficDistribution = nil })
	s.Until("for all", hints("node-a zone-a none", "node-b zone-b none"))

	servicetest.Change(s, s.Key("web"), func(service *corev1.Service) {
		service.Annotations = map[string]string{corev1.AnnotationTopologyMode: "Auto"}
	})
	s.Until("shared out to the zones", hints("node-a zone-a zone-a|", "node-b zone-b zone-b|"))
	s.NodeReady(servicetest.NodeB, false)
	defer s.NodeReady(servicetest.NodeB, true)
	s.Until("not shared out to one zone", hints("node-a zone-a none", "node-b zone-b none"))
}

func TestServerAPodOnANodeThatIsNotThereWaitsForIt(t *testing.T) {
	s := servicetest.On(t, shared.Get(t))
	s.Run(theController)
	s.Service("web")
	s.Shows("nobody", "web", "IPv4 :")
	s.Pod("web", 0)
	late := "late-" + s.Namespace
	s.Pod("web", 1, func(pod *corev1.Pod) {
		pod.Spec.NodeName = late
		pod.Status.Conditions[0].LastTransitionTime = metav1.NewTime(time.Date(2026, 5, 4, 3, 2, 1, 0, time.UTC))
	})
	s.Service("any", func(service *corev1.Service) {
		service.Spec.Selector, service.Spec.PublishNotReadyAddresses = map[string]string{"app": "web"}, true
	})
	s.Shows("shown where Pods count in any state", "any", web(0, 1))
	s.Shows("and not to others", "web", web(0))
	if have, want := s.Told("web", "FailedToUpdateEndpointSlices"), late; !strings.Contains(have, want) {
		t.Errorf("told %q, want the Node %s in it", have, want)
	}
	s.Node(late, "zone-a")
	s.Shows("once it is there", "web", web(0, 1))
	if a := s.Slices("web")[0].Annotations[corev1.EndpointsLastChangeTriggerTime]; a != "2026-05-04T03:02:01Z" {
		t.Errorf("the trigger time is %q, want that of the Pod that had to wait", a)
	}
	if err := client.For[*corev1.Node](s.Client).Delete(t.Context(), object.Key{Name: late}); err != nil {
		t.Fatal(err)
	}
}

func TestServerLabelsOfTheServiceAreMirroredToSlices(t *testing.T) {
	s := servicetest.On(t, shared.Get(t))
	s.Run(theController)
	s.Service("web")
	s.Shows("a slice", "web", "IPv4 :")
	servicetest.Change(s, s.Key("web"), func(service *corev1.Service) { service.Labels = map[string]string{"team": "a"} })
	want := map[string]string{"team": "a", discoveryv1.LabelServiceName: "web", discoveryv1.LabelManagedBy: Manager}
	s.Until("its labels", func() bool { return maps.Equal(s.Slices("web")[0].Labels, want) })
}

func TestServerSlicesThatSomebodyTouchesAreMended(t *testing.T) {
	s := servicetest.On(t, shared.Get(t))
	s.Run(theController)
	s.Service("web")
	s.Pods("web", 0, 2)
	s.Shows("two", "web", web(0, 1))
	servicetest.Change(s, object.KeyOf(s.Slices("web")[0]), func(slice *discoveryv1.EndpointSlice) { slice.Endpoints = slice.Endpoints[:1] })
	s.Shows("two again", "web", web(0, 1))
	first := s.Slices("web")[0]
	servicetest.Delete[*discoveryv1.EndpointSlice](s, first.Name)
	s.Until("another slice with both", func() bool {
		all := s.Slices("web")
		return len(all) == 1 && all[0].UID != first.UID && servicetest.Text(all[0]) == web(0, 1)
	})
	servicetest.Change(s, object.KeyOf(s.Slices("web")[0]), func(slice *discoveryv1.EndpointSlice) { slice.Labels[discoveryv1.LabelManagedBy] = "me" })
	s.Shows("one taken away, and another in its place", "web", web(0, 1), web(0, 1))
}

func TestServerTheTriggerTimeOfAChangeIsWritten(t *testing.T) {
	s := servicetest.On(t, shared.Get(t))
	s.Run(theController)
	service := s.Service("web")
	trigger := func() string {
		all := s.Slices("web")
		if len(all) != 1 {
			return ""
		}
		return all[0].Annotations[corev1.EndpointsLastChangeTriggerTime]
	}
	s.Until("the time of the Service", func() bool { return trigger() == service.CreationTimestamp.UTC().Format(time.RFC3339) })
	at := metav1.NewTime(time.Date(2026, 5, 4, 3, 2, 1, 0, time.UTC))
	s.Pod("web", 0, func(pod *corev1.Pod) { pod.Status.Conditions[0].LastTransitionTime = at })
	s.Until("the time of the Pod", func() bool { return trigger() == "2026-05-04T03:02:01Z" })
	s.Pod("web", 1, func(pod *corev1.Pod) {
		pod.Status.Conditions[0].LastTransitionTime = metav1.NewTime(at.Add(time.Second))
	})
	s.Until("the time of the next", func() bool { return trigger() == "2026-05-04T03:02:02Z" })
	servicetest.Delete[*corev1.Pod](s, "web-1")
	s.Until("none for a Pod that goes", func() bool { return trigger() == "" })
}

func TestServerANamespaceThatTerminatesGetsNoSlices(t *testing.T) {
	s := servicetest.On(t, shared.Get(t))
	s.Service("web")
	if err := client.For[*corev1.Namespace](s.Client).Delete(t.Context(), object.Key{Name: s.Namespace}); err != nil {
		t.Fatal(err)
	}
	other := servicetest.On(t, shared.Get(t))
	s.Run(theController)
	settled(other, "later")
	if s.Made("web") != 0 {
		t.Errorf("slices were made: %v", s.Shown(""))
	}
}

// gate holds back what the server tells of slices.
type gate struct {
	mu   sync.Mutex
	open chan struct{}
}

func (g *gate) wait(ctx context.Context) {
	g.mu.Lock()
	open := g.open
	g.mu.Unlock()
	if open == nil {
		return
	}
	select {
	case <-open:
	case <-ctx.Done():
	}
}

func (g *gate) close() (open func()) {
	g.mu.Lock()
	defer g.mu.Unlock()
	g.open = make(chan struct{})
	return sync.OnceFunc(func() { close(g.open) })
}

type gated struct {
	io.ReadCloser
	gate *gate
	ctx  context.Context
}

func (b *gated) Read(p []byte) (int, error) {
	n, err := b.ReadCloser.Read(p)
	b.gate.wait(b.ctx)
	return n, err
}

type roundTripper func(*http.Request) (*http.Response, error)

func (f roundTripper) RoundTrip(r *http.Request) (*http.Response, error) { return f(r) }

// heldBack waits until a key waits for its own writes, and a change of an object waits
// for it.
func heldBack(t *testing.T, c *controller.Controller, key, cause object.Key) {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), controlplanetest.Patience)
	defer cancel()
	again := time.NewTicker(time.Millisecond) // a queue tells nobody what is in it
	defer again.Stop()
	for {
		_, waits := c.Status(0).Waiting[key.String()]
		next := slices.ContainsFunc(c.Queue().Inspect(math.MaxInt).Running, func(r workqueue.Running[object.Key]) bool {
			return r.Key == key && r.Next != nil &&
				slices.ContainsFunc(r.Next.Causes, func(c workqueue.Cause) bool { return c.Ref.Key == cause })
		})
		if waits && next {
			return
		}
		select {
		case <-again.C:
		case <-ctx.Done():
			t.Fatalf("%s is not held back: %v", key, c.Status(0).Waiting)
		}
	}
}

func TestServerASliceThatTheCacheHasNotSeenYetIsWaitedFor(t *testing.T) {
	s := servicetest.On(t, shared.Get(t))
	var g gate
	config := rest.CopyConfig(s.Cluster.Config)
	config.Wrap(func(next http.RoundTripper) http.RoundTripper {
		return roundTripper(func(r *http.Request) (*http.Response, error) {
			response, err := next.RoundTrip(r)
			if err == nil && r.URL.Query().Get("watch") != "" && strings.HasSuffix(r.URL.Path, "/endpointslices") {
				response.Body = &gated{response.Body, &g, r.Context()}
			}
			return response, err
		})
	})
	var c *controller.Controller
	managertest.Run(t, config, func(mgr *manager.Manager) (manager.Runnable, error) {
		made, err := New(mgr, Defaults())
		if err == nil {
			c = made.(interface{ Loops() []controller.Loop }).Loops()[0].(*controller.Controller)
		}
		return made, err
	})
	// The Pod is known before the Service is: a slice without it would be waited for too.
	s.Pod("web", 0)
	s.Service("first", func(service *corev1.Service) { service.Spec.Selector = map[string]string{"app": "web"} })
	s.Shows("the Pod is known", "first", web(0))
	open := g.close()
	defer open()
	s.Service("web")
	s.Shows("the slice is there", "web", web(0))
	// More happens to the Service than its slices can be seen for.
	s.Pod("web", 1)
	heldBack(t, c, s.Key("web"), s.Key("web-1"))
	if have := s.Shown("web"); !slices.Equal(have, []string{web(0)}) {
		t.Errorf("while the slice has not been seen, the slices are %q", have)
	}
	open()
	s.Shows("both, in one slice", "web", web(0, 1))
	if s.Made("web") != 1 {
		t.Errorf("%d slices were made", s.Made("web"))
	}
}

func TestServerItsRightsAreEnough(t *testing.T) {
	s := servicetest.On(t, shared.Get(t))
	p := managertest.Run(t, s.Cluster.Restricted(t, Rights()), theController)
	s.Service("web")
	s.Pods("web", 0, 2)
	s.Shows("created", "web", web(0, 1))
	servicetest.Change(s, s.Key("web-1"), servicetest.Unready, "status")
	s.Shows("updated", "web", web(0, 1)+"()")
	servicetest.Delete[*corev1.Service](s, "web")
	s.Service("web", func(service *corev1.Service) { service.Spec.Selector = map[string]string{"app": "none"} })
	s.Shows("those of the old Service deleted", "web", "IPv4 :")
	if others := writes(p, s, "web"); !slices.ContainsFunc(others, func(w string) bool { return strings.HasPrefix(w, "DELETE") }) {
		t.Errorf("nothing was deleted: %q", others)
	}
}

func TestServerKilledAndRestartedInTheMiddleOfItsWork(t *testing.T) {
	s := servicetest.On(t, shared.Get(t))
	const services, pods = 12, 5
	for i := range services {
		s.Service(fmt.Sprint("web-", i), func(service *corev1.Service) { service.Spec.Selector = map[string]string{"app": "web"} })
	}
	for round := range 6 {
		p := s.Run(theController)
		s.Pods("web", round*pods, pods)
		s.Until("some slices that are new", func() bool { return len(s.Slices("")) >= min(services, 2*(round+1)) })
		p.Kill()
	}
	s.Run(theController)
	var every []int
	for n := range 6 * pods {
		every = append(every, n)
	}
	want := strings.Fields(web(every...))
	slices.Sort(want)
	s.Until("all Pods in one slice of each Service", func() bool {
		for i := range services {
			shown := s.Shown(fmt.Sprint("web-", i))
			if len(shown) != 1 {
				return false
			}
			have := strings.Fields(shown[0])
			if slices.Sort(have); !slices.Equal(have, want) {
				return false
			}
		}
		return true
	})
	settled(s, "later")
	for i := range services {
		if made := s.Made(fmt.Sprint("web-", i)); made != 1 {
			t.Errorf("%d slices were made for web-%d", made, i)
		}
	}
}
