// Copyright The Setpoint Authors.
// SPDX-License-Identifier: Apache-2.0

package clientgo

import (
	"k8s.io/client-go/tools/cache"

	setpoint "github.com/setpoint-io/setpoint/cache"
)

// BudgetOf returns the budget of an informer.
func BudgetOf(i cache.SharedIndexInformer) *setpoint.Budget { return i.(*Informer).options.Budget }
