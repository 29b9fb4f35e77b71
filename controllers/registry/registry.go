// Copyright The Setpoint Authors.
// SPDX-License-Identifier: Apache-2.0

package registry

import (
	"slices"
	"strings"

	"github.com/setpoint-io/setpoint/controllers"
	"github.com/setpoint-io/setpoint/controllers/attachdetach"
	"github.com/setpoint-io/setpoint/controllers/bootstrapsigner"
	"github.com/setpoint-io/setpoint/controllers/clusterroleaggregation"
	"github.com/setpoint-io/setpoint/controllers/cronjob"
	"github.com/setpoint-io/setpoint/controllers/csrapproving"
	"github.com/setpoint-io/setpoint/controllers/csrcleaner"
	"github.com/setpoint-io/setpoint/controllers/csrsigning"
	"github.com/setpoint-io/setpoint/controllers/daemonset"
	"github.com/setpoint-io/setpoint/controllers/deployment"
	"github.com/setpoint-io/setpoint/controllers/devicetainteviction"
	"github.com/setpoint-io/setpoint/controllers/disruption"
	"github.com/setpoint-io/setpoint/controllers/endpoints"
	"github.com/setpoint-io/setpoint/controllers/endpointslice"
	"github.com/setpoint-io/setpoint/controllers/endpointslicemirroring"
	"github.com/setpoint-io/setpoint/controllers/ephemeralvolume"
	"github.com/setpoint-io/setpoint/controllers/garbagecollector"
	"github.com/setpoint-io/setpoint/controllers/horizontalpodautoscaler"
	"github.com/setpoint-io/setpoint/controllers/job"
	"github.com/setpoint-io/setpoint/controllers/legacytokencleaner"
	"github.com/setpoint-io/setpoint/controllers/namespace"
	"github.com/setpoint-io/setpoint/controllers/nodeipam"
	"github.com/setpoint-io/setpoint/controllers/nodelifecycle"
	"github.com/setpoint-io/setpoint/controllers/nodettl"
	"github.com/setpoint-io/setpoint/controllers/pcrcleaner"
	"github.com/setpoint-io/setpoint/controllers/podgc"
	"github.com/setpoint-io/setpoint/controllers/podgroupprotection"
	"github.com/setpoint-io/setpoint/controllers/pvbinder"
	"github.com/setpoint-io/setpoint/controllers/pvcprotection"
	"github.com/setpoint-io/setpoint/controllers/pvprotection"
	"github.com/setpoint-io/setpoint/controllers/replicaset"
	"github.com/setpoint-io/setpoint/controllers/replicationcontroller"
	"github.com/setpoint-io/setpoint/controllers/resourceclaim"
	"github.com/setpoint-io/setpoint/controllers/resourcepoolstatusrequest"
	"github.com/setpoint-io/setpoint/controllers/resourcequota"
	"github.com/setpoint-io/setpoint/controllers/rootcapublisher"
	"github.com/setpoint-io/setpoint/controllers/selinuxwarning"
	"github.com/setpoint-io/setpoint/controllers/serviceaccount"
	"github.com/setpoint-io/setpoint/controllers/serviceaccounttoken"
	"github.com/setpoint-io/setpoint/controllers/servicecidr"
	"github.com/setpoint-io/setpoint/controllers/statefulset"
	"github.com/setpoint-io/setpoint/controllers/storageversiongc"
	"github.com/setpoint-io/setpoint/controllers/storageversionmigrator"
	"github.com/setpoint-io/setpoint/controllers/tainteviction"
	"github.com/setpoint-io/setpoint/controllers/tokencleaner"
	"github.com/setpoint-io/setpoint/controllers/trustbundle"
	"github.com/setpoint-io/setpoint/controllers/ttlafterfinished"
	"github.com/setpoint-io/setpoint/controllers/vacprotection"
	"github.com/setpoint-io/setpoint/controllers/validatingadmissionpolicystatus"
	"github.com/setpoint-io/setpoint/controllers/volumeexpander"
)

// Known returns all built-in controllers in the order of their names, each with the options
// that are its defaults. The caller owns the result: another call returns others.
func Known() []*controllers.Descriptor {
	all := []*controllers.Descriptor{
		attachdetach.Descriptor(),
		bootstrapsigner.Descriptor(),
		clusterroleaggregation.Descriptor(),
		cronjob.Descriptor(),
		csrapproving.Descriptor(),
		csrcleaner.Descriptor(),
		csrsigning.Descriptor(),
		daemonset.Descriptor(),
		deployment.Descriptor(),
		devicetainteviction.Descriptor(),
		disruption.Descriptor(),
		endpoints.Descriptor(),
		endpointslice.Descriptor(),
		endpointslicemirroring.Descriptor(),
		ephemeralvolume.Descriptor(),
		garbagecollector.Descriptor(),
		horizontalpodautoscaler.Descriptor(),
		job.Descriptor(),
		legacytokencleaner.Descriptor(),
		namespace.Descriptor(),
		nodeipam.Descriptor(),
		nodelifecycle.Descriptor(),
		nodettl.Descriptor(),
		pcrcleaner.Descriptor(),
		podgc.Descriptor(),
		podgroupprotection.Descriptor(),
		pvbinder.Descriptor(),
		pvcprotection.Descriptor(),
		pvprotection.Descriptor(),
		replicaset.Descriptor(),
		replicationcontroller.Descriptor(),
		resourceclaim.Descriptor(),
		resourcepoolstatusrequest.Descriptor(),
		resourcequota.Descriptor(),
		rootcapublisher.Descriptor(),
		selinuxwarning.Descriptor(),
		serviceaccount.Descriptor(),
		serviceaccounttoken.Descriptor(),
		servicecidr.Descriptor(),
		statefulset.Descriptor(),
		storageversiongc.Descriptor(),
		storageversionmigrator.Descriptor(),
		tainteviction.Descriptor(),
		tokencleaner.Descriptor(),
		trustbundle.Descriptor(),
		ttlafterfinished.Descriptor(),
		vacprotection.Descriptor(),
		validatingadmissionpolicystatus.Descriptor(),
		volumeexpander.Descriptor(),
	}
	slices.SortFunc(all, func(a, b *controllers.Descriptor) int { return strings.Compare(a.Name, b.Name) })
	return all
}
