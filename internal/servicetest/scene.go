// Copyright The Setpoint Authors.
// SPDX-License-Identifier: Apache-2.0

package servicetest

import (
	"context"
	"fmt"
	"hash/fnv"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	discoveryv1 "k8s.io/api/discovery/v1"
	eventsv1 "k8s.io/api/events/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/intstr"

	"github.com/setpoint-io/setpoint/cache"
	"github.com/setpoint-io/setpoint/client"
	"github.com/setpoint-io/setpoint/controller/owned"
	"github.com/setpoint-io/setpoint/internal/controlplanetest"
	"github.com/setpoint-io/setpoint/internal/managertest"
	"github.com/setpoint-io/setpoint/object"
)

// The Nodes of every scene, each in a zone of its own.
const (
	NodeA, ZoneA = "node-a", "zone-a"
	NodeB, ZoneB = "node-b", "zone-b"
)

// Scene is a namespace of a cluster, and what is seen of it. Its methods fail the test
// they were made for.
type Scene struct {
	Cluster   *controlplanetest.Cluster
	Client    *client.Client
	Namespace string

	t         testing.TB
	services  cache.SharedInformer[*corev1.Service]
	pods      cache.SharedInformer[*corev1.Pod]
	slices    cache.SharedInformer[*discoveryv1.EndpointSlice]
	endpoints cache.SharedInformer[*corev1.Endpoints]
	events    cache.SharedInformer[*eventsv1.Event]
	changed   chan struct{}

	mu   sync.Mutex
	made map[string]map[types.UID]bool // slices that were ever seen, by Service
}

// On makes a scene on a cluster.
func On(t testing.TB, cluster *controlplanetest.Cluster) *Scene {
	t.Helper()
	s := &Scene{Cluster: cluster, Client: cluster.Client, Namespace: cluster.Namespace(t), t: t, changed: make(chan struct{}, 1), made: map[string]map[types.UID]bool{}}
	s.Node(NodeA, ZoneA)
	s.Node(NodeB, ZoneB)
	factory := cache.NewFactory(s.Client, nil)
	s.services = look[*corev1.Service](s, factory)
	s.pods = look[*corev1.Pod](s, factory)
	s.slices = look[*discoveryv1.EndpointSlice](s, factory)
	s.endpoints = look[*corev1.Endpoints](s, factory)
	s.events = look[*eventsv1.Event](s, factory)
	if _, err := s.slices.AddHandler(s.count, cache.HandlerOptions{Name: t.Name(), EveryStep: true}); err != nil {
		t.Fatal(err)
	}
	ctx, stop := context.WithCancel(context.WithoutCancel(t.Context()))
	var running sync.WaitGroup
	running.Go(func() {
		if err := factory.Run(ctx); err != nil {
			t.Error(err)
		}
	})
	t.Cleanup(func() { stop(); running.Wait() })
	synced := []<-chan struct{}{s.services.Synced(), s.pods.Synced(), s.slices.Synced(), s.endpoints.Synced(), s.events.Synced()}
	for _, kind := range synced {
		select {
		case <-kind:
		case <-time.After(controlplanetest.Patience):
			t.Fatalf("the informers of the test have not synced after %s", controlplanetest.Patience)
		}
	}
	return s
}

// look makes an informer of the namespace that wakes Until.
func look[T object.Object](s *Scene, factory *cache.Factory) cache.SharedInformer[T] {
	informer := cache.Informer[T](factory, cache.InNamespace(s.Namespace))
	_, err := informer.AddHandler(func(cache.Event[T]) {
		select {
		case s.changed <- struct{}{}:
		default:
		}
	}, cache.HandlerOptions{Name: s.t.Name()})
	if err != nil {
		s.t.Fatal(err)
	}
	return informer
}

// count notes which slices were ever seen.
func (s *Scene) count(e cache.Event[*discoveryv1.EndpointSlice]) {
	m := e.Item().Meta()
	service := m.Labels.Get(discoveryv1.LabelServiceName)
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.made[service] == nil {
		s.made[service] = map[types.UID]bool{}
	}
	s.made[service][m.UID] = true
}

// Made returns how many slices of a Service were ever seen.
func (s *Scene) Made(service string) int {
	s.mu.Lock()
	defer s.mu.Unlock()
	return len(s.made[service])
}

// Until waits until a condition holds. It checks the condition whenever something has
// changed in the namespace.
func (s *Scene) Until(what string, holds func() bool) {
	s.t.Helper()
	ctx, cancel := context.WithTimeout(s.t.Context(), controlplanetest.Patience)
	defer cancel()
	for !holds() {
		select {
		case <-s.changed:
		case <-ctx.Done():
			var all []string
			for _, slice := range s.Slices("") {
				all = append(all, Text(slice))
			}
			s.t.Fatalf("%s: not so after %s; the slices are\n%s", what, controlplanetest.Patience, strings.Join(all, "\n"))
		}
	}
}

// Run runs controllers as a process with all rights.
func (s *Scene) Run(controllers ...managertest.Make) *managertest.Process {
	s.t.Helper()
	return managertest.Run(s.t, s.Cluster.Config, controllers...)
}

// Node makes a Node that is ready, if it is not there yet. It stays for other tests.
func (s *Scene) Node(name, zone string) {
	s.t.Helper()
	nodes := client.For[*corev1.Node](s.Client)
	node, err := nodes.Create(s.t.Context(), &corev1.Node{ObjectMeta: metav1.ObjectMeta{Name: name, Labels: map[string]string{corev1.LabelTopologyZone: zone}}})
	if apierrors.IsAlreadyExists(err) {
		node, err = nodes.Get(s.t.Context(), object.Key{Name: name})
	}
	if err != nil {
		s.t.Fatal(err)
	}
	s.NodeReady(node.Name, true)
}

// NodeReady sets whether a Node is ready.
func (s *Scene) NodeReady(name string, ready bool) {
	s.t.Helper()
	status := corev1.ConditionFalse
	if ready {
		status = corev1.ConditionTrue
	}
	Change(s, object.Key{Name: name}, func(node *corev1.Node) {
		node.Status.Conditions = []corev1.NodeCondition{{Type: corev1.NodeReady, Status: status}}
		node.Status.Allocatable = corev1.ResourceList{corev1.ResourceCPU: resource.MustParse("4")}
	}, "status")
}

// Service makes a Service that selects the label app with its own name, and has one
// port, 80, that leads to 8080.
func (s *Scene) Service(name string, change ...func(*corev1.Service)) *corev1.Service {
	s.t.Helper()
	service := &corev1.Service{
		ObjectMeta: metav1.ObjectMeta{Namespace: s.Namespace, Name: name},
		Spec: corev1.ServiceSpec{
			Selector: map[string]string{"app": name},
			Ports:    []corev1.ServicePort{{Name: "http", Port: 80, TargetPort: intstr.FromInt32(8080)}},
		},
	}
	for _, c := range change {
		c(service)
	}
	made, err := client.For[*corev1.Service](s.Client).Create(s.t.Context(), service)
	if err != nil {
		s.t.Fatal(err)
	}
	return made
}

// Pod makes a Pod of an app, called app-n, on NodeA, that is ready and has an address
// which follows from its name.
func (s *Scene) Pod(app string, n int, change ...func(*corev1.Pod)) *corev1.Pod {
	s.t.Helper()
	pod, err := s.makePod(app, n, change)
	if err != nil {
		s.t.Fatal(err)
	}
	return pod
}

func (s *Scene) makePod(app string, n int, change []func(*corev1.Pod)) (*corev1.Pod, error) {
	pod := &corev1.Pod{
		ObjectMeta: metav1.ObjectMeta{Namespace: s.Namespace, Name: fmt.Sprintf("%s-%d", app, n), Labels: map[string]string{"app": app}},
		Spec:       corev1.PodSpec{NodeName: NodeA, Containers: []corev1.Container{{Name: "main", Image: "app"}}},
	}
	pod.Status = corev1.PodStatus{
		Phase: corev1.PodRunning, PodIP: IP(app, n), PodIPs: []corev1.PodIP{{IP: IP(app, n)}},
		Conditions: []corev1.PodCondition{{Type: corev1.PodReady, Status: corev1.ConditionTrue, LastTransitionTime: metav1.Now()}},
	}
	for _, c := range change {
		c(pod)
	}
	status := pod.Status
	pods := client.For[*corev1.Pod](s.Client)
	made, err := pods.Create(s.t.Context(), pod)
	if err != nil {
		return nil, err
	}
	made.Status = status
	return pods.UpdateStatus(s.t.Context(), made)
}

// Pods makes the Pods first to first+count-1 of an app, several at a time.
func (s *Scene) Pods(app string, first, count int, change ...func(*corev1.Pod)) {
	s.t.Helper()
	const atOnce = 8
	for _, err := range owned.Batch(s.t.Context(), atOnce, func(_ context.Context, maker int) error {
		for n := maker; n < count; n += atOnce {
			if _, err := s.makePod(app, first+n, change); err != nil {
				return err
			}
		}
		return nil
	}) {
		s.t.Fatal(err)
	}
}

// IP returns the address of a Pod.
func IP(app string, n int) string {
	h := fnv.New32a()
	fmt.Fprint(h, app)
	return fmt.Sprintf("10.%d.%d.%d", h.Sum32()%200, n/250, n%250+1)
}

// IP6 returns the second address of a Pod that [DualStack] has made one of both families.
func IP6(app string, n int) string { return "fd00::" + strings.ReplaceAll(IP(app, n), ".", ":") }

// DualStack gives a Pod an address of the other family beside the one that it has.
func DualStack(pod *corev1.Pod) {
	second := "fd00::" + strings.ReplaceAll(pod.Status.PodIP, ".", ":")
	pod.Status.PodIPs = append(pod.Status.PodIPs, corev1.PodIP{IP: second})
}

// Unready makes a Pod one that is not ready.
func Unready(pod *corev1.Pod) {
	pod.Status.Conditions = []corev1.PodCondition{{Type: corev1.PodReady, Status: corev1.ConditionFalse, LastTransitionTime: metav1.Now()}}
}

// Ready makes a Pod one that is ready.
func Ready(pod *corev1.Pod) {
	pod.Status.Conditions = []corev1.PodCondition{{Type: corev1.PodReady, Status: corev1.ConditionTrue, LastTransitionTime: metav1.Now()}}
}

// Key returns the key of a name in the namespace.
func (s *Scene) Key(name string) object.Key { return object.Key{Namespace: s.Namespace, Name: name} }

// Change changes an object, or a part of it such as "status", and tries again after a
// conflict.
func Change[T object.Object](s *Scene, key object.Key, change func(T), part ...string) T {
	s.t.Helper()
	of := client.For[T](s.Client)
	write := of.Update
	for _, p := range part {
		write = func(ctx context.Context, o T, options ...client.WriteOption) (T, error) {
			return of.Sub(p).Update(ctx, key, o, options...)
		}
	}
	for {
		o, err := of.Get(s.t.Context(), key)
		if err != nil {
			s.t.Fatal(err)
		}
		change(o)
		o, err = write(s.t.Context(), o)
		if apierrors.IsConflict(err) {
			continue
		}
		if err != nil {
			s.t.Fatal(err)
		}
		return o
	}
}

// Delete deletes an object of the namespace at once.
func Delete[T object.Object](s *Scene, name string, options ...client.DeleteOption) {
	s.t.Helper()
	if len(options) == 0 {
		options = []client.DeleteOption{client.GracePeriod(0)}
	}
	if err := client.For[T](s.Client).Delete(s.t.Context(), s.Key(name), options...); err != nil {
		s.t.Fatal(err)
	}
}

// Slices returns the slices of a Service, or with "" all, in the order of their names.
func (s *Scene) Slices(service string) []*discoveryv1.EndpointSlice {
	var all []*discoveryv1.EndpointSlice
	for _, item := range s.slices.All() {
		slice, err := item.Object()
		if err != nil {
			s.t.Fatal(err)
		}
		if service == "" || slice.Labels[discoveryv1.LabelServiceName] == service {
			all = append(all, slice)
		}
	}
	slices.SortFunc(all, func(a, b *discoveryv1.EndpointSlice) int { return strings.Compare(a.Name, b.Name) })
	return all
}

// Shown returns what the slices of a Service show, as [Text] writes it, in order.
func (s *Scene) Shown(service string) []string {
	all := []string{}
	for _, slice := range s.Slices(service) {
		all = append(all, Text(slice))
	}
	slices.Sort(all)
	return all
}

// Shows waits until the slices of a Service are these.
func (s *Scene) Shows(what, service string, want ...string) {
	s.t.Helper()
	s.Until(fmt.Sprintf("%s: %q", what, want), func() bool { return slices.Equal(s.Shown(service), want) })
}

// Text writes a slice as "IPv4 8080: 10.0.0.1 10.0.0.2(serving,terminating)": an address
// has its conditions behind it, unless it is ready and nothing else.
func Text(slice *discoveryv1.EndpointSlice) string {
	var ports, all []string
	for _, p := range slice.Ports {
		ports = append(ports, fmt.Sprint(*p.Port))
	}
	for _, e := range slice.Endpoints {
		text := strings.Join(e.Addresses, "+")
		var words []string
		for word, c := range map[string]*bool{"ready": e.Conditions.Ready, "serving": e.Conditions.Serving, "terminating": e.Conditions.Terminating} {
			if c != nil && *c {
				words = append(words, word)
			}
		}
		slices.Sort(words)
		if said := strings.Join(words, ","); said != "ready,serving" {
			text += "(" + said + ")"
		}
		all = append(all, text)
	}
	slices.Sort(all)
	text := string(slice.AddressType) + " " + strings.Join(ports, ",") + ":"
	if len(all) > 0 {
		text += " " + strings.Join(all, " ")
	}
	return text
}

// Endpoints returns the Endpoints of a name, or nil.
func (s *Scene) Endpoints(name string) *corev1.Endpoints {
	e, err := s.endpoints.Get(s.Key(name))
	if err != nil && !apierrors.IsNotFound(err) {
		s.t.Fatal(err)
	}
	return e
}

// Told waits for an Event about an object of a name, and returns its message.
func (s *Scene) Told(name, reason string) string {
	s.t.Helper()
	var note string
	s.Until("an event "+reason, func() bool {
		for _, item := range s.events.All() {
			e, err := item.Object()
			if err != nil {
				s.t.Fatal(err)
			}
			if e.Reason == reason && e.Regarding.Name == name {
				note = e.Note
				return true
			}
		}
		return false
	})
	return note
}
