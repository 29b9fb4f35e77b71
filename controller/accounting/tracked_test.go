// Copyright The Setpoint Authors.
// SPDX-License-Identifier: Apache-2.0

package accounting_test

import (
	"fmt"
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/setpoint-io/setpoint/controller/accounting"
)

// gpus is a cluster with a DeviceClass that has an extended resource.
var gpus = accounting.Around{
	ExtendedResource: func(class string) string { return map[string]string{"gpu": "example.com/gpu"}[class] },
	HasDeviceClass:   func(resource string) bool { return resource == "example.com/gpu" },
}

func quotaOf(t *testing.T, scopes []corev1.ResourceQuotaScope, limits ...string) accounting.Quota {
	t.Helper()
	q := &corev1.ResourceQuota{Spec: corev1.ResourceQuotaSpec{Hard: corev1.ResourceList{}, Scopes: scopes}}
	for _, limit := range limits {
		q.Spec.Hard[corev1.ResourceName(limit)] = amounts("n=1")["n"]
	}
	quota, err := accounting.NewQuota(q)
	if err != nil {
		t.Fatal(err)
	}
	return quota
}

func TestTheKindsOfAQuota(t *testing.T) {
	for limits, want := range map[string]string{
		"pods": "pods", "limits.memory": "pods", "hugepages-2Mi": "pods",
		"services.nodeports": "services", "gold.storageclass.storage.k8s.io/requests.storage": "persistentvolumeclaims",
		"configmaps": "configmaps", "count/configmaps configmaps": "configmaps", "replicationcontrollers": "replicationcontrollers",
		"count/deployments.apps": "deployments.apps", "count/widgets.example.com pods": "pods widgets.example.com",
		"gpu.deviceclass.resource.k8s.io/devices": "resourceclaims.resource.k8s.io",
		"requests.example.com/gpu":                "pods resourceclaims.resource.k8s.io",
		"requests.example.com/fpga":               "pods",
		"unknown":                                 "",
	} {
		var kinds []string
		for _, kind := range quotaOf(t, nil, strings.Fields(limits)...).Kinds(gpus) {
			kinds = append(kinds, kind.String())
		}
		if got := strings.Join(kinds, " "); got != want {
			t.Errorf("%s: the kinds are %q, want %q", limits, got, want)
		}
	}
}

func TestWhereTheNumberOfObjectsIsEnough(t *testing.T) {
	deployments := schema.GroupResource{Group: "apps", Resource: "deployments"}
	for _, c := range []struct {
		kind   schema.GroupResource
		scopes []corev1.ResourceQuotaScope
		limits string
		want   string // "" if the object must be read
	}{
		{deployments, nil, "count/deployments.apps pods", "count/deployments.apps=1"},
		{accounting.Pods, nil, "count/pods", "count/pods=1"},
		{accounting.Pods, nil, "count/pods pods", ""},
		{accounting.Pods, []corev1.ResourceQuotaScope{corev1.ResourceQuotaScopeBestEffort}, "count/pods", ""},
		{accounting.Services, nil, "services count/services", "count/services=1 services=1"},
		{accounting.Services, nil, "services services.nodeports", ""},
		{accounting.PersistentVolumeClaims, nil, "persistentvolumeclaims", "persistentvolumeclaims=1"},
		{accounting.PersistentVolumeClaims, nil, "persistentvolumeclaims requests.storage", ""},
		{accounting.ResourceClaims, nil, "count/resourceclaims.resource.k8s.io", "count/resourceclaims.resource.k8s.io=1"},
		{accounting.ResourceClaims, nil, "requests.example.com/gpu", ""},
	} {
		t.Run(fmt.Sprint(c.kind, c.limits, c.scopes), func(t *testing.T) {
			used, ok := quotaOf(t, c.scopes, strings.Fields(c.limits)...).Uniform(c.kind, gpus)
			if ok != (c.want != "") || text(used) != c.want {
				t.Errorf("each object counts for %q (%t), want %q", text(used), ok, c.want)
			}
		})
	}
	// Other kinds than Pods and claims of volumes are in no scope.
	used, ok := quotaOf(t, []corev1.ResourceQuotaScope{corev1.ResourceQuotaScopeBestEffort}, "count/deployments.apps").Uniform(deployments, gpus)
	if !ok || len(used) > 0 {
		t.Errorf("a Deployment counts for %q (%t) in a scope of Pods", text(used), ok)
	}
}

func TestTheResourcesThatDependOnDevices(t *testing.T) {
	if got := quotaOf(t, nil, "pods", "requests.cpu", "requests.example.com/gpu", "gpu.deviceclass.resource.k8s.io/devices").OfDevices(); fmt.Sprint(got) != "[requests.example.com/gpu]" {
		t.Errorf("the resources are %v", got)
	}
}
