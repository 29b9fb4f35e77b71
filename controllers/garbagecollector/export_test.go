// Copyright The Setpoint Authors.
// SPDX-License-Identifier: Apache-2.0

package garbagecollector

import (
	"time"

	"github.com/setpoint-io/setpoint/controller"
)

// WaitForKinds sets how long a collector waits for all kinds before it begins.
func WaitForKinds(gc controller.Runnable, d time.Duration) { gc.(*garbageCollector).syncTime = d }
