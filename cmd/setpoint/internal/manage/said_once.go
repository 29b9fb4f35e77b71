// Copyright The Setpoint Authors.
// SPDX-License-Identifier: Apache-2.0

package manage

import (
	"log/slog"
	"slices"
	"strings"

	"github.com/setpoint-io/setpoint/controllers"
	"github.com/setpoint-io/setpoint/controllers/registry"
)

// protobuf is the form in which built-in kinds travel by default.
// Source: k8s.io/apimachinery/pkg/runtime, ContentTypeProtobuf.
const protobuf = "application/vnd.kubernetes.protobuf"

// sayIdle says in one line what of the command line has no effect here.
func sayIdle(log *slog.Logger, idle *idleFlags, tune *tuning, choice []string, contentType string, more ...any) {
	attributes := append(idle.given(), more...)
	if absent := registry.Absent(choice); len(absent) > 0 {
		attributes = append(attributes, "controllers", strings.Join(absent, " "))
	}
	if gates := tune.featureGates.idle(gatesRead(tune.known)); len(gates) > 0 {
		attributes = append(attributes, "featureGates", strings.Join(gates, " "))
	}
	if contentType != protobuf && contentType != jsonForm {
		attributes = append(attributes, "contentType", "--kube-api-content-type="+contentType)
	}
	if len(tune.compatibleWith) > 0 {
		attributes = append(attributes, "versions", "--min-compatibility-version")
	}
	if len(attributes) > 0 {
		log.Info("accepted without effect", attributes...)
	}
}

// jsonForm is the other form in which built-in kinds can travel.
const jsonForm = "application/json"

// sayStopped names the chosen controllers that flags of theirs stop, and says if none is left.
func sayStopped(log *slog.Logger, chosen, run []*controllers.Descriptor, choice []string) {
	for _, d := range chosen {
		if flag := d.StoppedBy(); flag != nil && !flag.Switch {
			log.Warn("a controller is not started", "controller", d.Name, "because", flag.String())
		}
	}
	if len(run) == 0 {
		log.Warn("no controller is started", "chosen", slices.Clone(choice))
	}
}

// sayWithoutController names the kinds whose controllers --controllers leaves out of a manager of
// all controllers. [New] logs each of the others that is not started, with its reason. A manager
// whose command line names its controllers one by one leaves the others to another manager, and
// says nothing. No Event goes to the objects: this process does not know which controllers run
// elsewhere.
func sayWithoutController(log *slog.Logger, chosen, run []*controllers.Descriptor, choice []string) {
	if !slices.Contains(choice, "*") {
		return
	}
	var names []string
	for _, kind := range registry.WithoutController(chosen, run) {
		if kind.Because == registry.LeftOut {
			names = append(names, kind.Objects())
		}
	}
	if len(names) > 0 {
		log.Info("kinds without a controller in this manager", "notRunning", strings.Join(names, " "))
	}
}
