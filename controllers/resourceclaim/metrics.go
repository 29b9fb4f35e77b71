// Copyright The Setpoint Authors.
// SPDX-License-Identifier: Apache-2.0

package resourceclaim

import (
	"slices"
	"strconv"
	"strings"

	"github.com/prometheus/client_golang/prometheus"
	resourcev1 "k8s.io/api/resource/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/setpoint-io/setpoint/cache"
	"github.com/setpoint-io/setpoint/controllers"
)

// Values of the label source: what a claim was made from. A claim of a user has "".
const (
	sourceTemplate = "resource_claim_template"
	sourceExtended = "extended_resource"
)

// Values of the label status of creates.
const (
	created    = "success"
	notCreated = "failure"
)

// claimMetrics are the metrics of claims.
// Source: k8s.io/kubernetes/pkg/controller/resourceclaim/metrics, and
// k8s.io/dynamic-resource-allocation/resourceclaim/metrics.
type claimMetrics struct {
	controllers.Metrics

	creates *prometheus.CounterVec
}

// separator joins the values of labels to a value of the index by which claims are counted.
const separator = "\x00"

func newMetrics(claims cache.SharedInformer[*resourcev1.ResourceClaim]) *claimMetrics {
	m := &claimMetrics{}
	m.creates = m.Counter("dynamic_resource_allocation_resourceclaim_creates_total", "Attempts to create a ResourceClaim from a template.",
		"status", "admin_access", "owner_api_group", "owner_api_kind")
	byLabels := cache.NewIndex(claims, func(item cache.Item[*resourcev1.ResourceClaim]) ([]string, error) {
		claim, err := item.Object()
		if err != nil {
			return nil, err
		}
		allocated := strconv.FormatBool(claim.Status.Allocation != nil)
		return []string{strings.Join([]string{allocated, adminAccess(claim), sourceOf(claim)}, separator)}, nil
	})
	m.GaugesFunc("dynamic_resource_allocation_resource_claims", "ResourceClaims.", []string{"allocated", "admin_access", "source"},
		func(set func(float64, ...string)) {
			for labels, n := range byLabels.Values(claims.Snapshot()) {
				set(float64(n), strings.Split(labels, separator)...)
			}
		})
	return m
}

// sourceOf returns what a claim was made from.
func sourceOf(claim *resourcev1.ResourceClaim) string {
	switch {
	case claim.Annotations[resourcev1.ExtendedResourceClaimAnnotation] == "true":
		return sourceExtended
	case claim.Annotations[resourcev1.PodResourceClaimAnnotation] != "":
		return sourceTemplate
	}
	return ""
}

// adminAccess returns whether a claim requests admin access to devices, as text.
func adminAccess(claim *resourcev1.ResourceClaim) string {
	return strconv.FormatBool(slices.ContainsFunc(claim.Spec.Devices.Requests, func(r resourcev1.DeviceRequest) bool {
		return r.Exactly != nil && r.Exactly.AdminAccess != nil && *r.Exactly.AdminAccess
	}))
}

// create counts an attempt to create a claim.
func (m *claimMetrics) create(claim *resourcev1.ResourceClaim, err error) {
	status := created
	if err != nil {
		status = notCreated
	}
	var owner schema.GroupKind
	if ref := metav1.GetControllerOfNoCopy(claim); ref != nil {
		owner = schema.FromAPIVersionAndKind(ref.APIVersion, ref.Kind).GroupKind()
	}
	m.creates.WithLabelValues(status, adminAccess(claim), owner.Group, owner.Kind).Inc()
}
