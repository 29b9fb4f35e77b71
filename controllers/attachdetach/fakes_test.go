// Copyright The Setpoint Authors.
// SPDX-License-Identifier: Apache-2.0

package attachdetach

import (
	"context"
	"fmt"
	"slices"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	corev1 "k8s.io/api/core/v1"
	eventsv1 "k8s.io/api/events/v1"
	storagev1 "k8s.io/api/storage/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/setpoint-io/setpoint/client"
	"github.com/setpoint-io/setpoint/internal/attachable"
	"github.com/setpoint-io/setpoint/internal/managertest"
	"github.com/setpoint-io/setpoint/object"
	"github.com/setpoint-io/setpoint/setpointtest/fakeapi"
)

const (
	driverName = "disk.example.com"
	finalizer  = "external-attacher/disk-example-com"
	tick       = 100 * time.Millisecond
)

// cluster is a server with Pods, volumes and Nodes inside of a bubble of synctest, with the parts
// around the controller: a driver that carries out VolumeAttachments, and the kubelets.
type cluster struct {
	t                                 *testing.T
	api                               *fakeapi.Server
	pods, claims, pvs, nodes, drivers *fakeapi.Resource
	attachments                       *fakeapi.Resource
	client                            *client.Client

	mu      sync.Mutex
	mounted map[spot]bool   // what the kubelets have mounted
	silent  map[string]bool // nodes whose kubelet does nothing
	hangs   bool            // the driver begins, and ends nothing
	fails   int             // how often the driver fails to attach
	force   bool            // detaching what a silent node has mounted is right
}

func newCluster(t *testing.T, nodes ...string) *cluster {
	t.Helper()
	api := fakeapi.New()
	c := &cluster{
		t: t, api: api, mounted: map[spot]bool{}, silent: map[string]bool{},
		pods:        api.Serve(object.Resource{Version: "v1", Plural: "pods", Kind: "Pod", Namespaced: true}, fakeapi.WithStatus()),
		claims:      api.Serve(object.Resource{Version: "v1", Plural: "persistentvolumeclaims", Kind: "PersistentVolumeClaim", Namespaced: true}, fakeapi.WithStatus()),
		pvs:         api.Serve(object.Resource{Version: "v1", Plural: "persistentvolumes", Kind: "PersistentVolume"}, fakeapi.WithStatus()),
		nodes:       api.Serve(object.Resource{Version: "v1", Plural: "nodes", Kind: "Node"}, fakeapi.WithStatus()),
		drivers:     api.Serve(object.Resource{Group: "storage.k8s.io", Version: "v1", Plural: "csidrivers", Kind: "CSIDriver"}),
		attachments: api.Serve(object.Resource{Group: "storage.k8s.io", Version: "v1", Plural: "volumeattachments", Kind: "VolumeAttachment"}, fakeapi.WithStatus()),
	}
	api.Serve(object.Resource{Group: "events.k8s.io", Version: "v1", Plural: "events", Kind: "Event", Namespaced: true})
	var err error
	if c.client, err = client.New(api.Config()); err != nil {
		t.Fatal(err)
	}
	c.attachments.Before(c.safe)
	for _, name := range nodes {
		c.addNode(name)
	}
	var playing sync.WaitGroup
	over, end := context.WithCancel(t.Context())
	playing.Go(func() { c.play(over) })
	t.Cleanup(func() { end(); playing.Wait() })
	return c
}

// attachedCluster is a cluster with a process in it, and with a Pod web-0 at the node a whose claim data has had a second to be attached.
func attachedCluster(t *testing.T, nodes ...string) (*cluster, *managertest.Process) {
	t.Helper()
	c := newCluster(t, nodes...)
	c.addVolume("data")
	p := c.start()
	c.addPod("web-0", "a", "data")
	pass(time.Second)
	return c, p
}

func (c *cluster) start() *managertest.Process {
	c.t.Helper()
	p := managertest.Run(c.t, c.api.Config(), managertest.Making(New, Defaults()))
	pass(time.Second)
	return p
}

func pass(d time.Duration) {
	time.Sleep(d)
	synctest.Wait()
}

func (c *cluster) addNode(name string) {
	c.t.Helper()
	err := c.nodes.Add(&corev1.Node{
		ObjectMeta: metav1.ObjectMeta{Name: name, Annotations: map[string]string{Annotation: "true"}},
		Status:     corev1.NodeStatus{Conditions: []corev1.NodeCondition{{Type: corev1.NodeReady, Status: corev1.ConditionTrue}}},
	})
	if err != nil {
		c.t.Fatal(err)
	}
}

// addVolume adds a claim with its volume, bound to each other.
func (c *cluster) addVolume(name string, modes ...corev1.PersistentVolumeAccessMode) {
	c.t.Helper()
	if len(modes) == 0 {
		modes = []corev1.PersistentVolumeAccessMode{corev1.ReadWriteOnce}
	}
	c.must(c.claims.Add(&corev1.PersistentVolumeClaim{
		ObjectMeta: metav1.ObjectMeta{Namespace: "ns", Name: name, UID: types.UID(name)},
		Spec:       corev1.PersistentVolumeClaimSpec{VolumeName: "pv-" + name, AccessModes: modes},
		Status:     corev1.PersistentVolumeClaimStatus{Phase: corev1.ClaimBound},
	}))
	c.must(c.pvs.Add(&corev1.PersistentVolume{
		ObjectMeta: metav1.ObjectMeta{Name: "pv-" + name},
		Spec: corev1.PersistentVolumeSpec{
			AccessModes: modes, ClaimRef: &corev1.ObjectReference{Namespace: "ns", Name: name, UID: types.UID(name)},
			PersistentVolumeSource: corev1.PersistentVolumeSource{CSI: &corev1.CSIPersistentVolumeSource{Driver: driverName, VolumeHandle: "h-" + name}},
		},
	}))
}

func (c *cluster) must(err error) {
	c.t.Helper()
	if err != nil {
		c.t.Fatal(err)
	}
}

// addPod adds a Pod at a node, with claims.
func (c *cluster) addPod(name, node string, claims ...string) {
	c.t.Helper()
	pod := &corev1.Pod{ObjectMeta: metav1.ObjectMeta{Namespace: "ns", Name: name}, Spec: corev1.PodSpec{NodeName: node}}
	for _, claim := range claims {
		pod.Spec.Volumes = append(pod.Spec.Volumes, corev1.Volume{Name: claim, VolumeSource: corev1.VolumeSource{
			PersistentVolumeClaim: &corev1.PersistentVolumeClaimVolumeSource{ClaimName: claim}}})
	}
	c.must(c.pods.Add(pod))
}

func (c *cluster) removePod(name string) { c.pods.Remove(object.Key{Namespace: "ns", Name: name}) }

// changeNode changes a Node, as its kubelet or an operator would.
func (c *cluster) changeNode(name string, change func(*corev1.Node)) {
	c.t.Helper()
	c.must(fakeapi.Change(c.nodes, object.Key{Name: name}, change))
}

// fail makes a node silent: its kubelet does nothing, and it is not ready.
func (c *cluster) fail(node string) {
	c.mu.Lock()
	c.silent[node] = true
	c.mu.Unlock()
	c.changeNode(node, func(n *corev1.Node) { n.Status.Conditions[0].Status = corev1.ConditionUnknown })
}

func (c *cluster) with(change func()) {
	c.mu.Lock()
	defer c.mu.Unlock()
	change()
}

// play has the driver and the kubelets work until the test ends.
func (c *cluster) play(ctx context.Context) {
	for ctx.Err() == nil {
		c.mu.Lock()
		c.playDriver()
		c.playKubelets()
		c.mu.Unlock()
		time.Sleep(tick)
	}
}

func (c *cluster) playDriver() {
	all, err := fakeapi.Objects[*storagev1.VolumeAttachment](c.attachments)
	c.must(err)
	for _, va := range all {
		key := object.KeyOf(va)
		switch {
		case c.hangs:
			if len(va.Finalizers) == 0 && va.DeletionTimestamp == nil {
				c.must(fakeapi.Change(c.attachments, key, func(va *storagev1.VolumeAttachment) { va.Finalizers = []string{finalizer} }))
			}
		case va.DeletionTimestamp != nil:
			c.attachments.Remove(key)
		case va.Status.Attached:
		case c.fails > 0:
			c.fails--
			c.must(fakeapi.Change(c.attachments, key, func(va *storagev1.VolumeAttachment) {
				va.Finalizers = []string{finalizer}
				va.Status.AttachError = &storagev1.VolumeError{Message: fmt.Sprint("no such disk, try ", c.fails)}
			}))
		default:
			c.must(fakeapi.Change(c.attachments, key, func(va *storagev1.VolumeAttachment) {
				va.Finalizers, va.Status.Attached, va.Status.AttachError = []string{finalizer}, true, nil
			}))
		}
	}
}

// playKubelets has each kubelet say which volumes it uses, mount those that are attached, and
// unmount those of Pods that are gone.
func (c *cluster) playKubelets() {
	pods, err := fakeapi.Objects[*corev1.Pod](c.pods)
	c.must(err)
	nodes, err := fakeapi.Objects[*corev1.Node](c.nodes)
	c.must(err)
	for _, node := range nodes {
		if c.silent[node.Name] {
			continue
		}
		needed := map[corev1.UniqueVolumeName]bool{}
		for _, pod := range pods {
			for _, v := range pod.Spec.Volumes {
				if pod.Spec.NodeName == node.Name {
					needed[unique(v.Name)] = true
				}
			}
		}
		inUse := []corev1.UniqueVolumeName{}
		for at := range c.mounted { // it unmounts first, and says so a tick later
			if at.node == node.Name && !needed[at.volume] {
				delete(c.mounted, at)
				inUse = append(inUse, at.volume)
			}
		}
		for volume := range needed {
			if slices.Contains(node.Status.VolumesInUse, volume) && reports(node, volume) {
				c.mounted[spot{volume, node.Name}] = true
			}
			inUse = append(inUse, volume)
		}
		slices.Sort(inUse)
		if !slices.Equal(inUse, node.Status.VolumesInUse) {
			c.must(fakeapi.Change(c.nodes, object.KeyOf(node), func(n *corev1.Node) { n.Status.VolumesInUse = inUse }))
		}
	}
}

func unique(claim string) corev1.UniqueVolumeName {
	return attachable.UniqueCSI(driverName, "h-"+claim)
}

// safe is called before each request about VolumeAttachments, and fails the test for one that must
// not be made.
func (c *cluster) safe(q *fakeapi.Request) *metav1.Status {
	if q.Verb != "create" && q.Verb != "delete" {
		return nil
	}
	all, err := fakeapi.Objects[*storagev1.VolumeAttachment](c.attachments)
	if err != nil {
		c.t.Error(err)
		return nil
	}
	if q.Verb == "create" {
		if len(c.exclusiveAttached(all)) > 0 {
			c.t.Errorf("a volume is attached to two nodes before %s", q)
		}
		return nil
	}
	for _, va := range all {
		if va.Name != q.Key.Name || va.Spec.Source.PersistentVolumeName == nil {
			continue
		}
		at := spot{unique((*va.Spec.Source.PersistentVolumeName)[len("pv-"):]), va.Spec.NodeName}
		c.mu.Lock()
		if c.mounted[at] && (!c.force || !c.silent[at.node]) {
			c.t.Errorf("%s is detached while it is mounted", at)
		}
		c.mu.Unlock()
	}
	return nil
}

// exclusiveAttached returns the exclusive volumes that have more than one VolumeAttachment.
func (c *cluster) exclusiveAttached(all []*storagev1.VolumeAttachment) (twice []string) {
	count := map[string]int{}
	for _, va := range all {
		if va.Spec.Source.PersistentVolumeName == nil {
			continue // of a volume in a Pod
		}
		name := *va.Spec.Source.PersistentVolumeName
		pv, err := fakeapi.Read[*corev1.PersistentVolume](c.pvs, object.Key{Name: name})
		if err == nil && exclusive(pv.Spec.AccessModes) {
			if count[name]++; count[name] == 2 {
				twice = append(twice, name)
			}
		}
	}
	return twice
}

// at returns the nodes that have a VolumeAttachment of a volume.
func (c *cluster) at(volume string) (nodes []string) {
	c.t.Helper()
	all, err := fakeapi.Objects[*storagev1.VolumeAttachment](c.attachments)
	c.must(err)
	if twice := c.exclusiveAttached(all); len(twice) > 0 {
		c.t.Errorf("%v are attached to two nodes", twice)
	}
	for _, va := range all {
		if *va.Spec.Source.PersistentVolumeName == "pv-"+volume {
			nodes = append(nodes, va.Spec.NodeName)
		}
	}
	slices.Sort(nodes)
	return nodes
}

func (c *cluster) wantAt(when, volume string, nodes ...string) {
	c.t.Helper()
	if got := c.at(volume); !slices.Equal(got, nodes) {
		c.t.Fatalf("%s the volume %s is at %q, want %q", when, volume, got, nodes)
	}
}

// wantMounted compares where a volume is mounted.
func (c *cluster) wantMounted(when, volume string, nodes ...string) {
	c.t.Helper()
	c.mu.Lock()
	defer c.mu.Unlock()
	var got []string
	for at := range c.mounted {
		if at.volume == unique(volume) {
			got = append(got, at.node)
		}
	}
	slices.Sort(got)
	if !slices.Equal(got, nodes) {
		c.t.Fatalf("%s the volume %s is mounted at %q, want %q", when, volume, got, nodes)
	}
}

// notes returns what the Events of a reason about a Pod say.
func (c *cluster) notes(reason, pod string) (all []string) {
	c.t.Helper()
	events, _, err := client.For[*eventsv1.Event](c.client).List(c.t.Context(), client.Selection{})
	c.must(err)
	for _, e := range events {
		if e.Reason == reason && e.Regarding.Name == pod {
			all = append(all, e.Note)
		}
	}
	return all
}

func (c *cluster) wantNote(reason, pod string, texts ...string) {
	c.t.Helper()
	pass(time.Second)
	if got := c.notes(reason, pod); !slices.Equal(got, texts) {
		c.t.Fatalf("the Events %s about %s say %q, want %q", reason, pod, got, texts)
	}
}
