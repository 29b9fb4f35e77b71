// Copyright The Setpoint Authors.
// SPDX-License-Identifier: Apache-2.0

package podlimits_test

import (
	"fmt"

	appsv1 "k8s.io/api/apps/v1"
	policyv1 "k8s.io/api/policy/v1"
	"k8s.io/apimachinery/pkg/util/intstr"

	"github.com/setpoint-io/setpoint/controller/podlimits"
)

// A Deployment of ten Pods is rolled out with the default limits, and a budget protects them.
func Example() {
	quarter := intstr.FromString("25%")
	d := &appsv1.Deployment{Spec: appsv1.DeploymentSpec{
		Replicas: new(int32(10)),
		Strategy: appsv1.DeploymentStrategy{
			Type:          appsv1.RollingUpdateDeploymentStrategyType,
			RollingUpdate: &appsv1.RollingUpdateDeployment{MaxSurge: &quarter, MaxUnavailable: &quarter},
		},
	}}
	limits, err := podlimits.Deployment(d)
	fmt.Println(limits.Least(), "to", limits.Most(), "Pods", err)

	pdb := &policyv1.PodDisruptionBudget{Spec: policyv1.PodDisruptionBudgetSpec{MaxUnavailable: &quarter}}
	budget, err := podlimits.PodDisruptionBudget(pdb, 10)
	fmt.Println(budget.Allowed(9), "may be evicted while 9 are healthy", err)

	quarter = intstr.FromString("a quarter")
	_, err = podlimits.Deployment(d)
	fmt.Println(err)
	// Output:
	// 8 to 13 Pods <nil>
	// 2 may be evicted while 9 are healthy <nil>
	// spec.strategy.rollingUpdate.maxSurge is "a quarter"; write a number of Pods, such as 1, or a percentage, such as "25%"
}
