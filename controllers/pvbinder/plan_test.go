// Copyright The Setpoint Authors.
// SPDX-License-Identifier: Apache-2.0

package pvbinder

import (
	"testing"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/setpoint-io/setpoint/internal/volumes"
)

func annotated(names ...string) func(*corev1.PersistentVolumeClaim) {
	return func(claim *corev1.PersistentVolumeClaim) {
		for _, name := range names {
			annotate(&claim.Annotations, name)
		}
	}
}

func referring(uid types.UID) func(*corev1.PersistentVolume) {
	return func(volume *corev1.PersistentVolume) {
		volume.Spec.ClaimRef = &corev1.ObjectReference{Namespace: "ns", Name: "data", UID: uid}
	}
}

func going(claim *corev1.PersistentVolumeClaim) { claim.DeletionTimestamp = &metav1.Time{} }

func TestWhatIsDoneForAClaim(t *testing.T) {
	claim := func(change ...func(*corev1.PersistentVolumeClaim)) *corev1.PersistentVolumeClaim {
		c := newClaim("data", change...)
		c.UID = "1"
		return c
	}
	bound := annotated(volumes.BindCompleted)
	slow := newClass("slow", "csi.example.com", consumer)
	fast := newClass("fast", "csi.example.com", immediate)
	for _, c := range []struct {
		name string
		view claimView
		// what the plan is: bind, match, classify, provision, in-tree, pend, lose or nothing
		want string
		code string
	}{
		{"without a volume", claimView{claim: claim()}, "match", ""},
		{"with a volume that is reserved for it", claimView{claim: claim(), reserved: newVolume("v", "1Gi", referring(""))}, "bind", ""},
		{"that is being deleted", claimView{claim: claim(going)}, "nothing", codeClaimDeleted},
		{"that is being deleted, with a reserved volume", claimView{claim: claim(going), reserved: newVolume("v", "1Gi", referring(""))}, "nothing", codeClaimDeleted},
		{"that is being deleted, half bound", claimView{claim: claim(going), reserved: newVolume("v", "1Gi", referring("1"))}, "bind", ""},
		{"of a class that waits", claimView{claim: claim(ofClass("slow")), class: slow}, "pend", codeFirstConsumer},
		{"of a class that waits, with a Pod", claimView{claim: claim(ofClass("slow")), class: slow, unscheduled: []string{"web"}}, "pend", codePodScheduled},
		{"of a class that waits, with a Node", claimView{claim: claim(ofClass("slow"), annotated(volumes.SelectedNode)), class: slow}, "provision", codeProvisioner},
		{"with a volume that was made too small", claimView{claim: claim(ofClass("slow"), annotated(volumes.SelectedNode)), class: slow, unfit: newVolume("v", "1Mi", referring("1"))}, "provision", codeMismatch},
		{"that names a volume", claimView{claim: claim(naming("v")), named: newVolume("v", "1Gi")}, "bind", ""},
		{"that names a volume of another class", claimView{claim: claim(naming("v")), named: newVolume("v", "1Gi", inClass("x"))}, "pend", codeMismatch},
		{"that names a volume which is reserved for it", claimView{claim: claim(naming("v")), named: newVolume("v", "1Mi", referring(""))}, "bind", ""},
		{"that names a volume of another claim", claimView{claim: claim(naming("v")), named: newVolume("v", "1Gi", referring("2"))}, "pend", codeTaken},
		{"that was given a volume of another claim", claimView{claim: claim(naming("v"), annotated(volumes.BoundByController)), named: newVolume("v", "1Gi", referring("2"))}, "nothing", codeTaken},
		{"that names no volume that exists", claimView{claim: claim(naming("v"))}, "pend", codeNotFound},
		{"bound", claimView{claim: claim(naming("v"), bound), named: newVolume("v", "1Gi", referring("1"))}, "bind", ""},
		{"bound, whose volume has lost its reference", claimView{claim: claim(naming("v"), bound), named: newVolume("v", "1Gi")}, "bind", ""},
		{"bound, whose volume is another claim's", claimView{claim: claim(naming("v"), bound), named: newVolume("v", "1Gi", referring("2"))}, "lose", codeLost},
		{"bound, without its volume", claimView{claim: claim(naming("v"), bound)}, "lose", codeLost},
		{"bound, without a name", claimView{claim: claim(bound)}, "lose", codeLost},
	} {
		c.view.options = &Options{Provisioning: true}
		p := decideClaim(&c.view)
		if got := planText(&p); got != c.want {
			t.Errorf("a claim %s: %s, want %s", c.name, got, c.want)
		}
		if got := codeOf(&p); got != c.code {
			t.Errorf("a claim %s: the reason is %q, want %q", c.name, got, c.code)
		}
	}

	// What follows if no free volume fits.
	noProvisioner := newClass("fast", volumes.NoProvisioner, immediate)
	for _, c := range []struct {
		name string
		view claimView
		off  bool
		want string
		code string
	}{
		{"without a class", claimView{claim: claim()}, false, "pend", codeNoVolume},
		{"without a class, with a default one", claimView{claim: claim(), fallback: fast}, false, "classify", ""},
		{"that wants no class, with a default one", claimView{claim: claim(ofClass("")), fallback: fast}, false, "pend", codeNoVolume},
		{"of a class", claimView{claim: claim(ofClass("fast")), class: fast}, false, "provision", codeProvisioner},
		{"of a class, without provisioning", claimView{claim: claim(ofClass("fast")), class: fast}, true, "nothing", codeDisabled},
		{"of a class that does not exist", claimView{claim: claim(ofClass("fast"))}, false, "nothing", codeNoClass},
		{"of a class without a provisioner", claimView{claim: claim(ofClass("fast")), class: noProvisioner}, false, "nothing", codeNoPlugin},
		{"of directories", claimView{claim: claim(ofClass("fast")), class: newClass("fast", volumes.HostPathPlugin, immediate)}, false, "in-tree", ""},
	} {
		c.view.options = &Options{Provisioning: !c.off}
		p := decideUnmatched(&c.view)
		if got := planText(&p); got != c.want {
			t.Errorf("a claim %s: %s, want %s", c.name, got, c.want)
		}
		if got := codeOf(&p); got != c.code {
			t.Errorf("a claim %s: the reason is %q, want %q", c.name, got, c.code)
		}
	}
}

func planText(p *claimPlan) string {
	switch {
	case p.bind != nil:
		return "bind"
	case p.match:
		return "match"
	case p.classify != "":
		return "classify"
	case p.inTree:
		return "in-tree"
	case p.provision != "":
		return "provision"
	case p.pend:
		return "pend"
	case p.lose:
		return "lose"
	}
	return "nothing"
}

func codeOf(p *claimPlan) string {
	if p.reason == nil {
		return ""
	}
	return p.reason.Code
}

func TestWhatIsDoneForAVolume(t *testing.T) {
	claim := func(change ...func(*corev1.PersistentVolumeClaim)) *corev1.PersistentVolumeClaim {
		c := newClaim("data", change...)
		c.UID = "1"
		return c
	}
	provisioned := func(v *corev1.PersistentVolume) {
		v.Annotations = map[string]string{volumes.ProvisionedBy: "csi.example.com"}
	}
	block := func(c *corev1.PersistentVolumeClaim) { c.Spec.VolumeMode = new(corev1.PersistentVolumeBlock) }
	del := reclaimed(corev1.PersistentVolumeReclaimDelete)
	for _, c := range []struct {
		name string
		view volumeView
		want volumePlan
	}{
		{"free", volumeView{volume: newVolume("v", "1Gi")}, volumePlan{available: true}},
		{"that a claim names", volumeView{volume: newVolume("v", "1Gi"), asks: claim(naming("v"))}, volumePlan{}},
		{"that a larger claim names", volumeView{volume: newVolume("v", "1Mi"), asks: claim(naming("v"))}, volumePlan{available: true}},
		{"reserved for nobody", volumeView{volume: newVolume("v", "1Gi", referring(""))}, volumePlan{available: true}},
		{"reserved", volumeView{volume: newVolume("v", "1Gi", referring("")), claim: claim()}, volumePlan{}},
		{"reserved for a larger claim", volumeView{volume: newVolume("v", "1Mi", referring("")), claim: claim()}, volumePlan{available: true}},
		{"reserved for a claim with another volume", volumeView{volume: newVolume("v", "1Gi", referring("")), claim: claim(naming("w"))}, volumePlan{available: true}},
		{"reserved for a claim that goes", volumeView{volume: newVolume("v", "1Gi", referring("")), claim: claim(going)}, volumePlan{available: true}},
		{"whose claim is gone", volumeView{volume: newVolume("v", "1Gi", referring("1"))}, volumePlan{release: true}},
		{"half bound", volumeView{volume: newVolume("v", "1Gi", referring("1")), claim: claim()}, volumePlan{}},
		{"of another mode", volumeView{volume: newVolume("v", "1Gi", referring("1")), claim: claim(block)}, volumePlan{mismatch: true}},
		{"bound", volumeView{volume: newVolume("v", "1Gi", referring("1")), claim: claim(naming("v"))}, volumePlan{}},
		{"whose claim has another volume", volumeView{volume: newVolume("v", "1Gi", referring("1")), claim: claim(naming("w"))}, volumePlan{unbind: true}},
		{"made for a claim that has another volume", volumeView{volume: newVolume("v", "1Gi", referring("1"), del, provisioned), claim: claim(naming("w"))}, volumePlan{release: true}},
		{"made and kept for a claim that has another volume", volumeView{volume: newVolume("v", "1Gi", referring("1"), provisioned), claim: claim(naming("w"))}, volumePlan{unbind: true}},
	} {
		got := decideVolume(&c.view)
		if got.reason = nil; got != c.want {
			t.Errorf("a volume %s: %+v, want %+v", c.name, got, c.want)
		}
	}
}

func TestTheFinalizerAndTheDriverOfAVolumeFollowItsPlugin(t *testing.T) {
	for _, c := range []struct {
		name       string
		plugin     string
		policy     corev1.PersistentVolumeReclaimPolicy
		finalizers []string
		want       []string
		driver     string
	}{
		{"static", "", corev1.PersistentVolumeReclaimDelete, nil, nil, ""},
		{"of a driver", "csi.example.com", corev1.PersistentVolumeReclaimDelete, []string{volumes.ExternalFinalizer}, []string{volumes.ExternalFinalizer}, ""},
		{"of a plugin", volumes.HostPathPlugin, corev1.PersistentVolumeReclaimDelete, nil, []string{volumes.InTreeFinalizer}, ""},
		{"of a plugin, kept", volumes.HostPathPlugin, corev1.PersistentVolumeReclaimRetain, []string{volumes.InTreeFinalizer}, nil, ""},
		{"of a plugin that is back", volumes.HostPathPlugin, corev1.PersistentVolumeReclaimDelete, []string{volumes.ExternalFinalizer}, []string{volumes.InTreeFinalizer}, ""},
		{"of a plugin that is gone", "kubernetes.io/aws-ebs", corev1.PersistentVolumeReclaimDelete, []string{volumes.InTreeFinalizer, "other"}, []string{"other"}, "ebs.csi.aws.com"},
	} {
		volume := newVolume("v", "1Gi", reclaimed(c.policy))
		volume.Finalizers = c.finalizers
		if c.plugin != "" {
			volume.Annotations = map[string]string{volumes.ProvisionedBy: c.plugin}
		}
		if next := migratedVolume(volume); next != nil {
			volume = next
		}
		if len(volume.Finalizers) != len(c.want) || len(c.want) > 0 && volume.Finalizers[0] != c.want[0] || volume.Annotations[volumes.MigratedTo] != c.driver {
			t.Errorf("a volume %s: %v %v, want %v and the driver %q", c.name, volume.Finalizers, volume.Annotations, c.want, c.driver)
		}
		if again := migratedVolume(volume); again != nil {
			t.Errorf("a volume %s: it is changed again: %v", c.name, again.ObjectMeta)
		}
	}
}

func TestOnlyDirectoriesBelowTmpAreRemoved(t *testing.T) {
	for _, path := range []string{"/etc", "/var/tmp/x", "/tmp", "/tmp/", "/tmp/../etc", "/tmp/x/../../etc", "tmp/x"} {
		volume := newVolume("v", "1Gi", func(v *corev1.PersistentVolume) {
			v.Spec.PersistentVolumeSource = corev1.PersistentVolumeSource{HostPath: &corev1.HostPathVolumeSource{Path: path}}
		})
		if err := removeHostPath(volume); err == nil {
			t.Errorf("%s was removed", path)
		}
	}
}
