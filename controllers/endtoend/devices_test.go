// Copyright The Setpoint Authors.
// SPDX-License-Identifier: Apache-2.0

package endtoend_test

import (
	"fmt"
	"strings"

	corev1 "k8s.io/api/core/v1"

	"github.com/setpoint-io/setpoint/client"
	"github.com/setpoint-io/setpoint/object"
)

// claimingPod is a Pod with a claim from that template. No node has its devices.
const claimingPod = `{"apiVersion": "v1", "kind": "Pod", "metadata": {"name": "web"}, "spec": {
	"resourceClaims": [{"name": "dev", "resourceClaimTemplateName": "devices"}], "containers": [{"name": "main", "image": "web"}]}}`

// claimTemplate makes the ResourceClaimTemplate "devices".
func (c *cluster) claimTemplate() {
	c.t.Helper()
	c.manifest(`{"apiVersion": "resource.k8s.io/v1", "kind": "ResourceClaimTemplate", "metadata": {"name": "devices"},
		"spec": {"spec": {"devices": {"requests": [{"name": "dev", "exactly": {"deviceClassName": "nobody.example.com"}}]}}}}`)
}

// claimOfEndedPod makes a Pod that has ended, and the claim that was made for it, which is
// allocated and reserved for it.
func (c *cluster) claimOfEndedPod(name string) {
	c.t.Helper()
	c.manifest(strings.ReplaceAll(`{"apiVersion": "v1", "kind": "Pod", "metadata": {"name": "ended-NAME"}, "spec": {"nodeName": "nowhere",
		"resourceClaims": [{"name": "dev", "resourceClaimName": "of-NAME"}], "containers": [{"name": "main", "image": "web"}]}}`, "NAME", name))
	pod, err := client.For[*corev1.Pod](c.Client).Get(c.t.Context(), object.Key{Namespace: c.namespace, Name: "ended-" + name})
	if err != nil {
		c.t.Fatal(err)
	}
	c.claim("of-"+name, fmt.Sprintf(`"ownerReferences": [{"apiVersion": "v1", "kind": "Pod", "name": %q, "uid": %q, "controller": true}]`, pod.Name, pod.UID), pod)
	c.status("pod/"+pod.Name, `{"status": {"phase": "Succeeded"}}`)
}

// claim makes a claim with a device, which is reserved for a Pod. more is added to its metadata.
func (c *cluster) claim(name, more string, pod *corev1.Pod) {
	c.t.Helper()
	c.manifest(strings.NewReplacer("NAME", name, "MORE", more).Replace(`{"apiVersion": "resource.k8s.io/v1", "kind": "ResourceClaim",
		"metadata": {"name": "NAME", "finalizers": ["resource.kubernetes.io/delete-protection"], MORE},
		"spec": {"devices": {"requests": [{"name": "dev", "exactly": {"deviceClassName": "nobody.example.com"}}]}}}`))
	c.status("resourceclaim/"+name, fmt.Sprintf(`{"status": {
		"allocation": {"devices": {"results": [{"request": "dev", "driver": "nobody.example.com", "pool": "pool", "device": "dev-0"}]}},
		"reservedFor": [{"resource": "pods", "name": %q, "uid": %q}]}}`, pod.Name, pod.UID))
}
