// Copyright The Setpoint Authors.
// SPDX-License-Identifier: Apache-2.0

package pvbinder

import (
	"slices"
	"testing"
	"testing/synctest"
	"time"

	corev1 "k8s.io/api/core/v1"
	eventsv1 "k8s.io/api/events/v1"
	storagev1 "k8s.io/api/storage/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/setpoint-io/setpoint/internal/managertest"
	"github.com/setpoint-io/setpoint/internal/volumes"
	"github.com/setpoint-io/setpoint/object"
	"github.com/setpoint-io/setpoint/setpointtest/fakeapi"
)

// cluster is a server with claims, volumes, classes and Pods, inside of a bubble of synctest. No
// other controller runs there.
type cluster struct {
	t                              *testing.T
	api                            *fakeapi.Server
	claims, volumes, classes, pods *fakeapi.Resource
	events                         *fakeapi.Resource
}

func newCluster(t *testing.T) *cluster {
	t.Helper()
	api := fakeapi.New()
	return &cluster{
		t: t, api: api,
		claims:  api.Serve(claimKind, fakeapi.WithStatus()),
		volumes: api.Serve(volumeKind, fakeapi.WithStatus()),
		classes: api.Serve(object.Resource{Group: "storage.k8s.io", Version: "v1", Plural: "storageclasses", Kind: "StorageClass"}),
		pods:    api.Serve(object.Resource{Version: "v1", Plural: "pods", Kind: "Pod", Namespaced: true}, fakeapi.WithStatus()),
		events:  api.Serve(object.Resource{Group: "events.k8s.io", Version: "v1", Plural: "events", Kind: "Event", Namespaced: true}),
	}
}

// start runs the controller. stop ends it.
func (c *cluster) start(change ...func(*Options)) *managertest.Process {
	c.t.Helper()
	o := Defaults()
	for _, f := range change {
		f(&o)
	}
	p := managertest.Run(c.t, c.api.Config(), managertest.Making(New, o))
	synctest.Wait()
	return p
}

// add adds an object as its user would.
func (c *cluster) add(o object.Object) {
	c.t.Helper()
	var err error
	switch o := o.(type) {
	case *corev1.PersistentVolumeClaim:
		err = c.claims.Add(o)
	case *corev1.PersistentVolume:
		err = c.volumes.Add(o)
	case *storagev1.StorageClass:
		err = c.classes.Add(o)
	case *corev1.Pod:
		err = c.pods.Add(o)
	}
	if err != nil {
		c.t.Fatal(err)
	}
	pass(time.Second)
}

func (c *cluster) claim(name string) *corev1.PersistentVolumeClaim {
	c.t.Helper()
	claim, err := fakeapi.Read[*corev1.PersistentVolumeClaim](c.claims, claimKey(name))
	if err != nil {
		c.t.Fatal(err)
	}
	return claim
}

func (c *cluster) volume(name string) *corev1.PersistentVolume {
	c.t.Helper()
	volume, err := fakeapi.Read[*corev1.PersistentVolume](c.volumes, object.Key{Name: name})
	if err != nil {
		c.t.Fatal(err)
	}
	return volume
}

// wantBound fails the test unless a claim and a volume are bound to each other, with all that
// belongs to it.
func (c *cluster) wantBound(claimName, volumeName string) {
	c.t.Helper()
	claim, volume := c.claim(claimName), c.volume(volumeName)
	_, completed := claim.Annotations[volumes.BindCompleted]
	if claim.Spec.VolumeName != volumeName || claim.Status.Phase != corev1.ClaimBound || !completed ||
		size(claim.Status.Capacity) != size(volume.Spec.Capacity) || !slices.Equal(claim.Status.AccessModes, volume.Spec.AccessModes) {
		c.t.Errorf("claim %s is not bound to volume %s: %+v %+v %v", claimName, volumeName, claim.Spec, claim.Status, claim.Annotations)
	}
	if ref := volume.Spec.ClaimRef; ref == nil || ref.Name != claimName || ref.Namespace != "ns" || ref.UID != claim.UID || volume.Status.Phase != corev1.VolumeBound {
		c.t.Errorf("volume %s is not bound to claim %s: %+v, %s", volumeName, claimName, ref, volume.Status.Phase)
	}
}

// wantPhase fails the test unless a volume is in a phase.
func (c *cluster) wantPhase(volumeName string, phase corev1.PersistentVolumePhase) {
	c.t.Helper()
	if got := c.volume(volumeName).Status.Phase; got != phase {
		c.t.Errorf("volume %s is %q, want %q", volumeName, got, phase)
	}
}

// wantPending fails the test unless a claim has no volume.
func (c *cluster) wantPending(claimName string) {
	c.t.Helper()
	if claim := c.claim(claimName); claim.Status.Phase != corev1.ClaimPending && claim.Status.Phase != "" {
		c.t.Errorf("claim %s is %q", claimName, claim.Status.Phase)
	}
}

// notes returns what the Events of a reason say.
func (c *cluster) notes(reason string) (all []string) {
	c.t.Helper()
	list, err := fakeapi.Objects[*eventsv1.Event](c.events)
	if err != nil {
		c.t.Fatal(err)
	}
	for _, e := range list {
		if e.Reason == reason {
			all = append(all, e.Note)
		}
	}
	return all
}

// wantNote fails the test unless there is one Event of a reason that says this.
func (c *cluster) wantNote(reason, note string) {
	c.t.Helper()
	if notes := c.notes(reason); !slices.Contains(notes, note) {
		c.t.Errorf("the Events %s are %q, want %q", reason, notes, note)
	}
}

// wantReason fails the test unless what holds a volume is that.
func (c *cluster) wantReason(p *managertest.Process, volume, want string) {
	c.t.Helper()
	if reasons := p.Reasons(volume); !slices.Equal(reasons, []string{want}) {
		c.t.Errorf("the reasons of volume %s are %q, want %q", volume, reasons, want)
	}
}

// pass lets time pass, and the controllers do what is due.
func pass(d time.Duration) {
	time.Sleep(d)
	synctest.Wait()
}

func claimKey(name string) object.Key { return object.Key{Namespace: "ns", Name: name} }

// newClaim returns a claim of 1Gi for one Node, without a class unless change sets one.
func newClaim(name string, change ...func(*corev1.PersistentVolumeClaim)) *corev1.PersistentVolumeClaim {
	claim := &corev1.PersistentVolumeClaim{
		ObjectMeta: metav1.ObjectMeta{Namespace: "ns", Name: name},
		Spec: corev1.PersistentVolumeClaimSpec{
			AccessModes: []corev1.PersistentVolumeAccessMode{corev1.ReadWriteOnce},
			Resources:   corev1.VolumeResourceRequirements{Requests: storage("1Gi")},
		},
		Status: corev1.PersistentVolumeClaimStatus{Phase: corev1.ClaimPending},
	}
	for _, f := range change {
		f(claim)
	}
	return claim
}

// newVolume returns a volume of a size for one Node, without a class unless change sets one.
func newVolume(name, size string, change ...func(*corev1.PersistentVolume)) *corev1.PersistentVolume {
	volume := &corev1.PersistentVolume{
		ObjectMeta: metav1.ObjectMeta{Name: name},
		Spec: corev1.PersistentVolumeSpec{
			AccessModes:                   []corev1.PersistentVolumeAccessMode{corev1.ReadWriteOnce},
			Capacity:                      storage(size),
			PersistentVolumeReclaimPolicy: corev1.PersistentVolumeReclaimRetain,
			PersistentVolumeSource:        corev1.PersistentVolumeSource{CSI: &corev1.CSIPersistentVolumeSource{Driver: "csi.example.com", VolumeHandle: name}},
		},
	}
	for _, f := range change {
		f(volume)
	}
	return volume
}

func newClass(name, provisioner string, mode storagev1.VolumeBindingMode, change ...func(*storagev1.StorageClass)) *storagev1.StorageClass {
	class := &storagev1.StorageClass{
		ObjectMeta: metav1.ObjectMeta{Name: name}, Provisioner: provisioner, VolumeBindingMode: &mode,
		ReclaimPolicy: new(corev1.PersistentVolumeReclaimDelete),
	}
	for _, f := range change {
		f(class)
	}
	return class
}

func isDefault(class *storagev1.StorageClass) {
	class.Annotations = map[string]string{volumes.IsDefaultClass: "true"}
}

func created(second int64) func(*storagev1.StorageClass) {
	return func(class *storagev1.StorageClass) { class.CreationTimestamp = metav1.Unix(second, 0) }
}

func ofClass(name string) func(*corev1.PersistentVolumeClaim) {
	return func(claim *corev1.PersistentVolumeClaim) { claim.Spec.StorageClassName = &name }
}

func naming(volume string) func(*corev1.PersistentVolumeClaim) {
	return func(claim *corev1.PersistentVolumeClaim) { claim.Spec.VolumeName = volume }
}

func reservedFor(name string) func(*corev1.PersistentVolume) {
	return func(volume *corev1.PersistentVolume) {
		volume.Spec.ClaimRef = &corev1.ObjectReference{Namespace: "ns", Name: name}
	}
}

func reclaimed(policy corev1.PersistentVolumeReclaimPolicy) func(*corev1.PersistentVolume) {
	return func(volume *corev1.PersistentVolume) { volume.Spec.PersistentVolumeReclaimPolicy = policy }
}

func inClass(name string) func(*corev1.PersistentVolume) {
	return func(volume *corev1.PersistentVolume) { volume.Spec.StorageClassName = name }
}

func storage(size string) corev1.ResourceList {
	return corev1.ResourceList{corev1.ResourceStorage: resource.MustParse(size)}
}

const (
	immediate = storagev1.VolumeBindingImmediate
	consumer  = storagev1.VolumeBindingWaitForFirstConsumer
)
