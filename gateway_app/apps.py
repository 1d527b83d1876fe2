from django.apps import AppConfig


class GatewayAppConfig(AppConfig):
    name = "gateway_app"
    verbose_name = "Gateway"

    def ready(self) -> None:
        from gateway_app.operations.doctor import machine  # noqa: F401 - it registers its checks
        from gateway_app.runtime.toolsets import check_profiles

        check_profiles()
