// Copyright The Setpoint Authors.
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"time"

	"github.com/spf13/pflag"

	"github.com/setpoint-io/setpoint/controllers/registry"
)

// batchPeriods are how long controllers of endpoints wait for more changes after the first.
type batchPeriods struct{ endpoints, slices, mirrored time.Duration }

func (b *batchPeriods) flags(flags *pflag.FlagSet) {
	flags.DurationVar(&b.endpoints, "endpoint-updates-batch-period", 0, "how long endpoints-controller waits after a change of a Pod, to join it with the changes that follow")
	flags.DurationVar(&b.slices, "endpointslice-updates-batch-period", 0, "how long endpointslice-controller waits after a change of a Pod, to join it with the changes that follow")
	flags.DurationVar(&b.mirrored, "mirroring-endpointslice-updates-batch-period", 0, "how long endpointslice-mirroring-controller waits after a change of Endpoints, to join it with the changes that follow")
}

func (b *batchPeriods) into(o *registry.Options) {
	o.EndpointsBatchPeriod = max(b.endpoints, 0)
	o.EndpointSliceBatchPeriod = max(b.slices, 0)
	o.MirroringBatchPeriod = max(b.mirrored, 0)
}
