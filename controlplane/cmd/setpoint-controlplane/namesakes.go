// Copyright The Setpoint Authors.
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"os"
	"path/filepath"
	"runtime/debug"
	_ "time/tzdata" // kube-apiserver validates the time zones of CronJobs, also on machines that have none

	"go.etcd.io/etcd/server/v3/etcdmain"
	_ "k8s.io/client-go/plugin/pkg/client/auth" // kubectl's means of authentication
	"k8s.io/component-base/cli"
	"k8s.io/component-base/logs"
	_ "k8s.io/component-base/logs/json/register"          // kube-apiserver --logging-format=json
	_ "k8s.io/component-base/metrics/prometheus/clientgo" // kube-apiserver's metrics of its own requests
	_ "k8s.io/component-base/metrics/prometheus/version"  // and of its version
	"k8s.io/kubectl/pkg/cmd"
	"k8s.io/kubectl/pkg/cmd/util"
	"k8s.io/kubernetes/cmd/kube-apiserver/app"
)

// namesake returns the program that this process is if it was started under the name of one of
// Kubernetes' own: arg0 is the first argument of the process, usually the path of a link. Each
// does what its own main function does, on the same code, and returns the exit status.
// Source: package main in k8s.io/kubernetes/cmd/kube-apiserver, k8s.io/kubernetes/cmd/kubectl and
// go.etcd.io/etcd/server/v3.
func namesake(arg0 string) (run func() int, ok bool) {
	switch filepath.Base(arg0) {
	case "kube-apiserver":
		return runAPIServer, true
	case "etcd":
		return runEtcd, true
	case "kubectl":
		return runKubectl, true
	}
	return nil, false
}

// garbage is how much the heap of kube-apiserver grows between two collections, in percent, unless
// GOGC says otherwise. An API server of tests starts often and lives for seconds: with Go's 100, about a
// seventh more CPU is used until it is ready. At rest it takes as much memory either way.
const garbage = 200

func runAPIServer() int {
	if os.Getenv("GOGC") == "" {
		debug.SetGCPercent(garbage)
	}
	return cli.Run(app.NewAPIServerCommand())
}

// runEtcd seldom returns: etcd ends the process, by a signal if it got one.
func runEtcd() int {
	etcdmain.Main(os.Args)
	return 0
}

func runKubectl() int {
	// The level of -v counts while the commands are made: plugins and .kuberc are read then.
	_, _ = logs.GlogSetter(cmd.GetLogVerbosity(os.Args)) // a level that is no number is an error of the flag, below
	if err := cli.RunNoErrOutput(cmd.NewDefaultKubectlCommand()); err != nil {
		util.CheckErr(err) // prints the error and ends the process with the status for it
	}
	return 0
}
