package main

import (
	"context"
	"os"
	"path/filepath"

	"github.com/spf13/pflag"
	"k8s.io/klog/v2"
	schedapp "k8s.io/kubernetes/cmd/kube-scheduler/app"
	schedoptions "k8s.io/kubernetes/cmd/kube-scheduler/app/options"
)

func init() {
	builders["scheduler"] = func(ctx context.Context, c *cluster) (func(context.Context), error) {
		o := schedoptions.NewOptions()
		fs := pflag.NewFlagSet("kube-scheduler", pflag.ContinueOnError)
		for _, f := range o.Flags.FlagSets {
			fs.AddFlagSet(f)
		}
		if err := fs.Parse([]string{"--kubeconfig=" + filepath.Join(c.dir, "admin.kubeconfig"), "--leader-elect=false",
			"--secure-port=0", "--kube-api-qps=1000", "--kube-api-burst=1000"}); err != nil {
			return nil, err
		}
		cc, sched, err := schedapp.Setup(ctx, o)
		if err != nil {
			return nil, err
		}
		return func(ctx context.Context) {
			if err := schedapp.Run(ctx, cc, sched); err != nil && ctx.Err() == nil {
				klog.ErrorS(err, "kube-scheduler")
				os.Exit(1)
			}
		}, nil
	}
}
