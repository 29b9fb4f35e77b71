// Copyright The Setpoint Authors.
// SPDX-License-Identifier: Apache-2.0

package controllerruntime

import (
	crcache "sigs.k8s.io/controller-runtime/pkg/cache"

	"github.com/setpoint-io/setpoint/cache"
)

// FactoryOf returns what a cache makes its informers with.
func FactoryOf(c crcache.Cache) *cache.Factory { return c.(*informerCache).factory }
