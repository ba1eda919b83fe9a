// FlashInfer's headers include this one but use nothing of it; the toolkit here lacks it.
#pragma once
