// Copyright The Setpoint Authors.
// SPDX-License-Identifier: Apache-2.0

package client

import (
	"context"
	"encoding/json"
	"fmt"
	"net/http"
	"strings"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/kubernetes/scheme"

	"github.com/setpoint-io/setpoint/object"
)

type schemaKey = schema.GroupVersionKind

// clusterScoped holds the built-in kinds whose objects live outside of
// namespaces. Discovery would tell the same for one more request a group at each
// start. A test compares the table with a real server's discovery.
var clusterScoped = map[schema.GroupKind]bool{
	{Kind: "ComponentStatus"}:  true,
	{Kind: "Namespace"}:        true,
	{Kind: "Node"}:             true,
	{Kind: "PersistentVolume"}: true,

	{Group: "admissionregistration.k8s.io", Kind: "MutatingAdmissionPolicy"}:          true,
	{Group: "admissionregistration.k8s.io", Kind: "MutatingAdmissionPolicyBinding"}:   true,
	{Group: "admissionregistration.k8s.io", Kind: "MutatingWebhookConfiguration"}:     true,
	{Group: "admissionregistration.k8s.io", Kind: "ValidatingAdmissionPolicy"}:        true,
	{Group: "admissionregistration.k8s.io", Kind: "ValidatingAdmissionPolicyBinding"}: true,
	{Group: "admissionregistration.k8s.io", Kind: "ValidatingWebhookConfiguration"}:   true,
	{Group: "authentication.k8s.io", Kind: "SelfSubjectReview"}:                       true,
	{Group: "authentication.k8s.io", Kind: "TokenReview"}:                             true,
	{Group: "authorization.k8s.io", Kind: "SelfSubjectAccessReview"}:                  true,
	{Group: "authorization.k8s.io", Kind: "SelfSubjectRulesReview"}:                   true,
	{Group: "authorization.k8s.io", Kind: "SubjectAccessReview"}:                      true,
	{Group: "certificates.k8s.io", Kind: "CertificateSigningRequest"}:                 true,
	{Group: "certificates.k8s.io", Kind: "ClusterTrustBundle"}:                        true,
	{Group: "flowcontrol.apiserver.k8s.io", Kind: "FlowSchema"}:                       true,
	{Group: "flowcontrol.apiserver.k8s.io", Kind: "PriorityLevelConfiguration"}:       true,
	{Group: "internal.apiserver.k8s.io", Kind: "StorageVersion"}:                      true,
	{Group: "networking.k8s.io", Kind: "IPAddress"}:                                   true,
	{Group: "networking.k8s.io", Kind: "IngressClass"}:                                true,
	{Group: "networking.k8s.io", Kind: "ServiceCIDR"}:                                 true,
	{Group: "node.k8s.io", Kind: "RuntimeClass"}:                                      true,
	{Group: "rbac.authorization.k8s.io", Kind: "ClusterRole"}:                         true,
	{Group: "rbac.authorization.k8s.io", Kind: "ClusterRoleBinding"}:                  true,
	{Group: "resource.k8s.io", Kind: "DeviceClass"}:                                   true,
	{Group: "resource.k8s.io", Kind: "DeviceTaintRule"}:                               true,
	{Group: "resource.k8s.io", Kind: "ResourcePoolStatusRequest"}:                     true,
	{Group: "resource.k8s.io", Kind: "ResourceSlice"}:                                 true,
	{Group: "scheduling.k8s.io", Kind: "PriorityClass"}:                               true,
	{Group: "storage.k8s.io", Kind: "CSIDriver"}:                                      true,
	{Group: "storage.k8s.io", Kind: "CSINode"}:                                        true,
	{Group: "storage.k8s.io", Kind: "StorageClass"}:                                   true,
	{Group: "storage.k8s.io", Kind: "VolumeAttachment"}:                               true,
	{Group: "storage.k8s.io", Kind: "VolumeAttributesClass"}:                          true,
	{Group: "storagemigration.k8s.io", Kind: "StorageVersionMigration"}:               true,
}

// KindOf returns the kind of a typed object: what the object says of itself, or
// else what the client's scheme says of its type.
func (c *Client) KindOf(o runtime.Object) (schema.GroupVersionKind, error) {
	if kind := o.GetObjectKind().GroupVersionKind(); kind.Kind != "" && kind.Version != "" {
		return kind, nil
	}
	kinds, _, err := c.scheme.ObjectKinds(o)
	if err != nil {
		return schema.GroupVersionKind{}, fmt.Errorf("finding the kind of %T: %w: register the type in a scheme and give that to client.WithScheme, or name the resource", o, err)
	}
	return kinds[0], nil
}

// Resolve returns how the server serves a kind. Built-in kinds are known without
// asking; others are looked up in the server's discovery, once. A kind that the
// server does not serve is an apierrors.IsNotFound.
func (c *Client) Resolve(ctx context.Context, kind schema.GroupVersionKind) (object.Resource, error) {
	if scheme.Scheme.Recognizes(kind) {
		plural, _ := meta.UnsafeGuessKindToResource(kind)
		return object.Resource{
			Group: kind.Group, Version: kind.Version, Plural: plural.Resource, Kind: kind.Kind,
			Namespaced: !clusterScoped[kind.GroupKind()],
		}, nil
	}
	c.mu.Lock()
	resource, known := c.resources[kind]
	c.mu.Unlock()
	if known {
		return resource, nil
	}
	path := "/apis/" + kind.Group + "/" + kind.Version
	if kind.Group == "" {
		path = "/api/" + kind.Version
	}
	answer, err := c.Request(http.MethodGet).Path(path).Do(ctx)
	if err != nil && !apierrors.IsNotFound(err) {
		return object.Resource{}, fmt.Errorf("looking up kind %s: %w", kind, err)
	}
	var list metav1.APIResourceList
	if err == nil {
		if err := json.Unmarshal(answer.Body, &list); err != nil {
			return object.Resource{}, fmt.Errorf("looking up kind %s: reading %s: %w", kind, path, err)
		}
	}
	for _, r := range list.APIResources {
		if r.Kind != kind.Kind || strings.Contains(r.Name, "/") { // a subresource
			continue
		}
		resource := object.Resource{Group: kind.Group, Version: kind.Version, Plural: r.Name, Kind: r.Kind, Namespaced: r.Namespaced}
		c.mu.Lock()
		c.resources[kind] = resource
		c.mu.Unlock()
		return resource, nil
	}
	return object.Resource{}, &apierrors.StatusError{ErrStatus: metav1.Status{
		Status: metav1.StatusFailure, Code: http.StatusNotFound, Reason: metav1.StatusReasonNotFound,
		Message: fmt.Sprintf("the server serves no kind %s in %s", kind.Kind, kind.GroupVersion()),
	}}
}

// Plural returns the name of a kind as kubectl prints it, without asking a
// server: right for built-in kinds, a good guess for others.
func Plural(kind schema.GroupVersionKind) string {
	plural, _ := meta.UnsafeGuessKindToResource(kind)
	return plural.GroupResource().String()
}
