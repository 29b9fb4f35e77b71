// Copyright The Setpoint Authors.
// SPDX-License-Identifier: Apache-2.0

package resourcepoolstatusrequest

import (
	"strings"
	"time"

	resourcev1alpha3 "k8s.io/api/resource/v1alpha3"
	"k8s.io/apimachinery/pkg/api/meta"

	"github.com/setpoint-io/setpoint/controller"
)

// How long requests are kept.
// Source: k8s.io/kubernetes/pkg/controller/resourcepoolstatusrequest, completedRequestTTL and
// pendingRequestTTL.
const (
	keptAnswered = time.Hour
	keptPending  = 24 * time.Hour
)

// expiry returns when a request is deleted.
func expiry(request *resourcev1alpha3.ResourcePoolStatusRequest) time.Time {
	created := request.CreationTimestamp.Time
	if request.Status == nil {
		return created.Add(keptPending)
	}
	for _, kind := range []string{resourcev1alpha3.ResourcePoolStatusRequestConditionComplete, resourcev1alpha3.ResourcePoolStatusRequestConditionFailed} {
		if c := meta.FindStatusCondition(request.Status.Conditions, kind); c != nil {
			return c.LastTransitionTime.Add(keptAnswered)
		}
	}
	return created.Add(keptAnswered)
}

// codeIncomplete is the code of the reason why a request has no answer yet.
const codeIncomplete = "PoolIncomplete"

func waits(driver string, pools []string) controller.Reason {
	return controller.Reason{
		Code: codeIncomplete, Text: "the driver {driver} has not published all slices of its pools {pools}",
		Params: controller.With("driver", driver, "pools", strings.Join(pools, ", ")), Ends: "the driver publishes them",
	}
}
