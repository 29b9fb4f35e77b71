// Copyright The Setpoint Authors.
// SPDX-License-Identifier: Apache-2.0

package volumeexpander

import (
	"slices"
	"strings"
	"testing"
	"testing/synctest"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/setpoint-io/setpoint/internal/managertest"
	"github.com/setpoint-io/setpoint/internal/volumes"
	"github.com/setpoint-io/setpoint/object"
	"github.com/setpoint-io/setpoint/setpointtest/fakeapi"
)

// cluster is a server in memory, inside of a bubble of synctest, with the controller, a claim of
// 1Gi and its volume.
type cluster struct {
	*managertest.Bubble
	t               *testing.T
	claims, volumes *fakeapi.Resource
	process         *managertest.Process
}

var data = object.Key{Namespace: "ns", Name: "data"}

func start(t *testing.T, source corev1.PersistentVolumeSource, change ...func(*corev1.PersistentVolume)) *cluster {
	t.Helper()
	b := managertest.NewBubble(t)
	c := &cluster{
		Bubble: b, t: t,
		claims:  b.Serve(managertest.Claims, fakeapi.WithStatus()),
		volumes: b.Serve(managertest.Volumes, fakeapi.WithStatus()),
	}
	claim := &corev1.PersistentVolumeClaim{
		ObjectMeta: metav1.ObjectMeta{Namespace: data.Namespace, Name: data.Name, UID: "of-data"},
		Spec:       corev1.PersistentVolumeClaimSpec{VolumeName: "disk", Resources: corev1.VolumeResourceRequirements{Requests: size("1Gi")}},
		Status:     corev1.PersistentVolumeClaimStatus{Phase: corev1.ClaimBound, Capacity: size("1Gi")},
	}
	volume := &corev1.PersistentVolume{
		ObjectMeta: metav1.ObjectMeta{Name: "disk"},
		Spec: corev1.PersistentVolumeSpec{
			PersistentVolumeSource: source, Capacity: size("1Gi"),
			ClaimRef: &corev1.ObjectReference{Namespace: data.Namespace, Name: data.Name, UID: claim.UID},
		},
	}
	for _, f := range change {
		f(volume)
	}
	c.Add(c.claims, claim)
	c.Add(c.volumes, volume)
	c.process = b.Start(managertest.Making(New, Defaults()))
	return c
}

func size(text string) corev1.ResourceList {
	return corev1.ResourceList{corev1.ResourceStorage: resource.MustParse(text)}
}

// change changes the claim.
func (c *cluster) change(f func(*corev1.PersistentVolumeClaim)) {
	c.t.Helper()
	if err := fakeapi.Change(c.claims, data, f); err != nil {
		c.t.Fatal(err)
	}
	managertest.Settle()
}

// grow has the claim ask for 2Gi.
func (c *cluster) grow() {
	c.t.Helper()
	c.change(func(claim *corev1.PersistentVolumeClaim) { claim.Spec.Resources.Requests = size("2Gi") })
}

func (c *cluster) resizer() string {
	return c.claims.Get(data).GetAnnotations()[volumes.StorageResizer]
}

func (c *cluster) wantNotes(notes ...string) {
	c.t.Helper()
	if got := c.Notes(expanding); !slices.Equal(got, notes) {
		c.t.Errorf("the Events say %q, want %q", got, notes)
	}
}

func (c *cluster) wantReasons(reasons ...string) {
	c.t.Helper()
	if got := c.process.Reasons(data.String()); !slices.Equal(got, reasons) {
		c.t.Errorf("the reasons are %q, want %q", got, reasons)
	}
}

var csi = corev1.PersistentVolumeSource{CSI: &corev1.CSIPersistentVolumeSource{Driver: "csi.example.com"}}

func TestTheGrowthOfACSIVolumeIsLeftToItsDriver(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c := start(t, csi)
		if n := c.process.Runs().Stats().Runs; n != 0 {
			t.Errorf("a claim that has what it wants has %d runs", n)
		}
		c.grow()
		c.wantNotes("waiting for an external controller to expand this PVC")
		c.wantReasons("WaitsForResizer: the claim waits until the resizer of csi.example.com has grown volume disk to 2Gi (until the status of the claim has that size)")
		c.change(func(claim *corev1.PersistentVolumeClaim) {
			claim.Status.AllocatedResources = size("2Gi")
		})
		if n := c.process.Runs().Stats().Runs; n != 1 {
			t.Errorf("the growth has %d runs, want 1", n)
		}
		c.change(func(claim *corev1.PersistentVolumeClaim) { claim.Status.Capacity = size("2Gi") })
		c.wantReasons()
		if got := c.resizer(); got != "" {
			t.Errorf("the annotation is %q", got)
		}
		if writes := c.process.Writes(); len(writes) > 0 {
			t.Errorf("it wrote %q", writes)
		}
	})
}

func TestTheDriverThatHasTakenAPluginOverIsNamed(t *testing.T) {
	for plugin, test := range map[string]struct {
		source corev1.PersistentVolumeSource
		driver string
	}{
		"kubernetes.io/aws-ebs":         {corev1.PersistentVolumeSource{AWSElasticBlockStore: &corev1.AWSElasticBlockStoreVolumeSource{}}, "ebs.csi.aws.com"},
		"kubernetes.io/azure-disk":      {corev1.PersistentVolumeSource{AzureDisk: &corev1.AzureDiskVolumeSource{}}, "disk.csi.azure.com"},
		"kubernetes.io/azure-file":      {corev1.PersistentVolumeSource{AzureFile: &corev1.AzureFilePersistentVolumeSource{}}, "file.csi.azure.com"},
		"kubernetes.io/cinder":          {corev1.PersistentVolumeSource{Cinder: &corev1.CinderPersistentVolumeSource{}}, "cinder.csi.openstack.org"},
		"kubernetes.io/gce-pd":          {corev1.PersistentVolumeSource{GCEPersistentDisk: &corev1.GCEPersistentDiskVolumeSource{}}, "pd.csi.storage.gke.io"},
		"kubernetes.io/portworx-volume": {corev1.PersistentVolumeSource{PortworxVolume: &corev1.PortworxVolumeSource{}}, "pxd.portworx.com"},
		"kubernetes.io/vsphere-volume":  {corev1.PersistentVolumeSource{VsphereVolume: &corev1.VsphereVirtualDiskVolumeSource{}}, "csi.vsphere.vmware.com"},
	} {
		t.Run(strings.TrimPrefix(plugin, "kubernetes.io/"), func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				c := start(t, test.source)
				c.grow()
				c.wantNotes("CSI migration enabled for " + plugin + "; waiting for external resizer to expand the pvc")
				if got := c.resizer(); got != test.driver {
					t.Errorf("the annotation is %q, want %q", got, test.driver)
				}
				c.change(func(claim *corev1.PersistentVolumeClaim) { claim.Spec.Resources.Requests = size("3Gi") })
				if writes := c.process.Writes(); !slices.Equal(writes, []string{"PATCH /api/v1/namespaces/ns/persistentvolumeclaims/data/status"}) {
					t.Errorf("it wrote %q", writes)
				}
			})
		})
	}
}

func TestTheAnnotationIsTriedAgain(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c := start(t, corev1.PersistentVolumeSource{Cinder: &corev1.CinderPersistentVolumeSource{}})
		c.claims.RefuseNext(1, "patch", fakeapi.Forbidden("persistentvolumeclaims"))
		c.claims.LoseNext(1, "patch")
		c.grow()
		if got := c.resizer(); got != "cinder.csi.openstack.org" {
			t.Errorf("the annotation is %q", got)
		}
	})
}

func TestAVolumeWithoutAResizerIsSaidToWait(t *testing.T) {
	for name, test := range map[string]struct {
		source corev1.PersistentVolumeSource
		notes  []string
		code   string
	}{
		"hostPath": {corev1.PersistentVolumeSource{HostPath: &corev1.HostPathVolumeSource{}}, []string{"waiting for an external controller to expand this PVC"}, codeWaits},
		"flex":     {corev1.PersistentVolumeSource{FlexVolume: &corev1.FlexPersistentVolumeSource{}}, nil, codeFlex},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				c := start(t, test.source)
				c.grow()
				c.wantNotes(test.notes...)
				if got := c.process.Reasons(data.String()); len(got) != 1 || !strings.HasPrefix(got[0], test.code+": ") {
					t.Errorf("the reasons are %q, want %s", got, test.code)
				}
			})
		})
	}
}

func TestAVolumeOfAnotherClaimIsLeftAlone(t *testing.T) {
	for name, ref := range map[string]*corev1.ObjectReference{
		"no claim":            nil,
		"an earlier claim":    {Namespace: "ns", Name: "data", UID: "earlier"},
		"another namespace's": {Namespace: "other", Name: "data", UID: "of-data"},
	} {
		t.Run(strings.ReplaceAll(name, " ", "-"), func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				c := start(t, corev1.PersistentVolumeSource{Cinder: &corev1.CinderPersistentVolumeSource{}},
					func(volume *corev1.PersistentVolume) { volume.Spec.ClaimRef = ref })
				c.grow()
				c.wantNotes()
				if writes := c.process.Writes(); len(writes) > 0 {
					t.Errorf("it wrote %q", writes)
				}
			})
		})
	}
}

func TestAClaimThatIsNotBoundIsLeftAlone(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c := start(t, csi)
		c.change(func(claim *corev1.PersistentVolumeClaim) { claim.Status.Phase = corev1.ClaimPending })
		c.grow()
		c.wantNotes()
	})
}
